"""Plans, as lists of jobs: nothing is run."""

import importlib
import os

import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser

from fairseq_capsule.errors import UserError
from fairseq_capsule.tables.definitions import REPOSITORY, load_table
from fairseq_capsule.tables.measures import RATIOS, applies, model_options
from fairseq_capsule.tables.planning import described, needed_by, plan, refuse_missing_folders
from fairseq_capsule.tables.runs import GIVEN, Places, Run, run_of
from fairseq_capsule.tables.scales import load_scale

SMALL, SMOKE, PAPER = (load_scale(name) for name in ("small", "smoke", "paper"))
TRANSFORMER = "small/multi30k/transformer/seed1"


def jobs_of(table, scale, places, *arguments, **options):
    return {job.name: job for job in plan(load_table(table), scale, places, *arguments, **options)}


def words_of(job):
    """The words of its training."""
    return next(step.command for step in job.steps if step.command[0].endswith("train.sh"))


def make(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")


def test_everything_comes_behind_what_it_needs(places):
    for table in ("duan-table2", "zheng-table1", "weng-table5", "wang-table1"):
        seen = set()
        for name, job in jobs_of(table, SMOKE, places).items():
            assert set(job.after) <= seen
            seen.add(name)


def test_a_row_starts_from_its_baseline(places):
    jobs = jobs_of("weng-table3", SMALL, places)
    gret = jobs["small/multi30k/gret_transformer+on-transformer/seed1"]
    continued = "small/multi30k/continued+on-transformer/seed1"
    assert gret.after == ("prepare multi30k", TRANSFORMER, continued)
    assert f"task.init_from_baseline={places.runs / TRANSFORMER}/checkpoint_avg_table.pt" in words_of(gret)
    assert "optimization.max_epoch=12" not in words_of(gret)
    assert "optimization.max_epoch=12" in words_of(jobs[TRANSFORMER])
    evaluation = next(step.command for step in gret.steps if step.command[0].endswith("evaluate.sh"))
    assert evaluation[evaluation.index("--against") + 1] == str(places.runs / continued)


def test_a_student_learns_of_its_teacher(places):
    jobs = jobs_of("wang-table2", SMOKE, places)
    teacher = "smoke/toy-smoke/transformer+size-big/seed1"
    student = jobs["smoke/toy-smoke/capsnmt+teacher-transformer+size-big/seed1"]
    assert jobs[f"distill {teacher}"].after == ("prepare toy-smoke", teacher)
    assert f"distill {teacher}" in student.after
    assert str(places.runs / teacher / "distilled" / "bin") in words_of(student)


def test_what_is_there_is_not_planned(places):
    folder = places.runs / TRANSFORMER
    make(places.data / "multi30k" / "manifest.tsv")
    make(folder / "finished")
    make(folder / "checkpoint_avg_table.pt")
    make(folder / "measures" / "size.json")
    jobs = jobs_of("duan-table2", SMALL, places)
    assert "prepare multi30k" not in jobs
    [evaluation] = jobs[TRANSFORMER].steps
    assert (
        evaluation.command[0].endswith("evaluate.sh") and jobs[TRANSFORMER].hours == 0.06
    )  # translating and measuring
    make(folder / "evaluation" / "test" / "scores.json")
    assert TRANSFORMER not in jobs_of("duan-table2", SMALL, places)
    assert all(TRANSFORMER not in job.after for job in jobs_of("duan-table2", SMALL, places).values())


def test_scores_that_were_compared_with_another_run_are_made_again(places):
    run = "small/multi30k/capsule_transformer/seed1"
    scores = places.runs / run / "evaluation" / "test" / "scores.json"
    make(scores)

    def compared():
        commands = [step.command for step in jobs_of("duan-table2", SMALL, places)[run].steps]
        return any("--against" in command for command in commands)

    assert compared()
    scores.write_text('{"against": "/elsewhere/evaluation/test/generate.out"}')
    assert compared()
    scores.write_text(f'{{"against": "{places.runs / TRANSFORMER}/evaluation/test/generate.out"}}')
    assert not compared()


def test_tables_share_runs(places):
    first, second = (set(jobs_of(table, SMALL, places)) for table in ("duan-table2", "duan-table4"))
    assert TRANSFORMER in first & second and len(first & second) == 3  # the corpus, the Transformer, the encoder row


def test_overrides_that_change_nothing_make_no_other_run(places):
    """Six capsules and three iterations are what the configuration has."""
    ours = "small/multi30k/capsnmt/seed1"
    assert ours in jobs_of("wang-figure3", SMALL, places) and ours in jobs_of("wang-table1", SMALL, places)
    names = jobs_of("weng-figure4", SMALL, places)
    assert "small/multi30k/gret_transformer+on-transformer/seed1" in names
    assert "small/multi30k/gret_transformer+global_capsules-16+on-transformer/seed1" in names
    assert len(names) == 3 + 20 and not any("capsules-32" in name or "iterations-3" in name for name in names)


def test_what_is_only_timed_is_not_trained(places):
    jobs = jobs_of("wang-table3", PAPER, places)
    assert len(jobs) == 4 and "prepare wmt14-en-de-50k" not in jobs
    for job in jobs.values():
        assert [step.reports for step in job.steps] == [True] and job.gpus == 1 and not job.after
    assert "--beam 8" in " ".join(jobs["paper/wmt14-en-de-50k/capsnmt+recipe-wang/seed1"].steps[0].command)


def test_a_licensed_corpus_that_is_not_there_is_named_before_anything_runs(places, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jobs = plan(load_table("duan-table2"), PAPER, places)
    with pytest.raises(UserError, match="no folder CWMT here, .* or run prepare-wmt17-zh-en.sh first"):
        refuse_missing_folders(jobs)
    (tmp_path / "CWMT").mkdir()
    refuse_missing_folders(jobs)


@pytest.mark.parametrize("scale", [SMALL, PAPER], ids=lambda scale: scale.name)
@pytest.mark.parametrize("name", ["zheng-table1", "weng-table3", "weng-table4"])
def test_speeds_are_beside_a_model_of_the_same_size(name, scale, places, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    systems = importlib.import_module("systems")
    task, table = systems.build_task(1000), load_table(name)
    column = next(column for column in table.columns if column.measure == "speed_generate")
    runs = [run_of(table, row, column, scale, 1, places) for row in table.in_order()]
    measured = [run for run in runs if applies(column.measure, run)]
    assert 1 < len(measured) < len(runs)
    for run in measured:
        arch, words = model_options(run)
        options = dict(map(systems.option, words[1::2]))
        with torch.device("meta"):
            ours = systems.build(arch, task, **{**systems.preset_options(arch), **options})
            theirs = systems.build(systems.baseline_of(arch), task, **systems.baseline_options(arch, **options))
        sizes = [{name: tuple(value.shape) for name, value in model.named_parameters()} for model in (ours, theirs)]
        assert sizes[1].items() <= sizes[0].items(), run.name


@pytest.mark.parametrize("measure", RATIOS)
def test_no_model_has_a_ratio_to_itself(measure, places):
    """It would be a 1.00 that nobody measured; every table with such a column has a row without one."""
    found = 0
    for name in sorted(path.stem for path in (REPOSITORY / "configs" / "tables").glob("*.yaml")):
        table = load_table(name)
        for column in (column for column in table.columns if column.measure == measure):
            runs = [run_of(table, row, column, PAPER, 1, places) for row in table.in_order()]
            own = [run for run in runs if run.config in ("transformer", "lstm", GIVEN)]
            assert own and not any(applies(measure, run) for run in own)
            assert any(applies(measure, run) for run in runs)
            found += 1
    assert found


def test_seeds_are_trainings_of_their_own(places):
    jobs = jobs_of("duan-table2", SMALL, places, [1, 3])
    assert sum(name.endswith("seed3") for name in jobs) == 4
    job = jobs["small/multi30k/capsule_transformer/seed3"]
    assert "common.seed=3" in words_of(job) and "small/multi30k/transformer/seed3" in job.after


def test_rows_bring_what_they_need(places):
    jobs = jobs_of("weng-table5", SMOKE, places, rows=["Last"])
    assert list(jobs) == [
        "prepare toy-smoke",
        "smoke/toy-smoke/transformer/seed1",
        "smoke/toy-smoke/gret_transformer+on-transformer/seed1",
        "smoke/toy-smoke/probe+criterion.probe_reads-last+on-gret_transformer+on-transformer/seed1",
    ]


@pytest.mark.parametrize(
    "rows, message",
    [(["nobody"], "no row 'nobody'; its rows are: Transformer-"), (["GDR (Zheng et al. 2019)"], "quoted")],
)
def test_rows_that_cannot_be_run(places, rows, message):
    with pytest.raises(UserError, match=message):
        plan(load_table("weng-table1" if "quoted" in message else "duan-table1"), SMOKE, places, rows=rows)


def test_a_given_baseline_is_not_trained(places, tmp_path):
    checkpoint = tmp_path / "baseline.pt"
    checkpoint.touch()
    jobs = jobs_of("weng-table3", SMALL, places, [1, 2], baseline=checkpoint)
    assert TRANSFORMER not in jobs and "small/multi30k/given" in jobs
    gret = jobs["small/multi30k/gret_transformer+on-given/seed2"]
    assert f"task.init_from_baseline={places.runs}/small/multi30k/given/checkpoint_given.pt" in words_of(gret)
    assert jobs["small/multi30k/given"].hours == 0.06  # translating and measuring

    given = places.runs / "small/multi30k/given/checkpoint_given.pt"
    given.parent.mkdir(parents=True)
    os.symlink(checkpoint, given)
    later = jobs_of("weng-table3", SMALL, places)  # a later call finds it
    assert TRANSFORMER not in later and "small/multi30k/gret_transformer+on-given/seed1" in later
    other = tmp_path / "other.pt"
    other.touch()
    with pytest.raises(UserError, match="baseline given here before"):
        plan(load_table("weng-table3"), SMALL, places, baseline=other)
    checkpoint.unlink()
    for again in (None, other):
        with pytest.raises(UserError, match="baseline given here before, .*baseline.pt, is gone; name another --runs"):
            plan(load_table("weng-table3"), SMALL, places, baseline=again)


def test_a_baseline_s_path_is_one_value_for_hydra(tmp_path):
    places = Places(tmp_path / "a,b's runs", tmp_path / "data")
    gret = jobs_of("weng-table3", SMALL, places)["small/multi30k/gret_transformer+on-transformer/seed1"]
    (word,) = (word for word in words_of(gret) if word.startswith("task.init_from_baseline="))
    parsed = OverridesParser.create().parse_override(word)
    assert not parsed.is_sweep_override()
    assert parsed.value() == str(places.runs / TRANSFORMER / "checkpoint_avg_table.pt")


def test_decimals_stand_whole_in_a_run_s_name():
    names = {
        Run("small", SMALL.setting("duan", "wmt14-en-de", False), "transformer", (f"model.dropout={rate}",), 1).title
        for rate in ("0.5", "1.5")
    }
    assert names == {"transformer+dropout-0.5", "transformer+dropout-1.5"}


def test_a_given_baseline_teaches(places, tmp_path):
    checkpoint = tmp_path / "baseline.pt"
    checkpoint.touch()
    jobs = jobs_of("wang-table2", SMALL, places, baseline=checkpoint)
    assert not any("transformer" in name for name in jobs)
    assert "small/multi30k/given" in jobs["distill small/multi30k/given"].after
    assert "distill small/multi30k/given" in jobs["small/multi30k/capsnmt+teacher-given/seed1"].after


def test_baselines_that_cannot_be_given(places, tmp_path):
    with pytest.raises(UserError, match="no such checkpoint"):
        plan(load_table("weng-table3"), SMALL, places, baseline=tmp_path / "missing.pt")
    (tmp_path / "baseline.pt").touch()
    with pytest.raises(UserError, match="no row of duan-table2 starts from"):
        plan(load_table("duan-table2"), SMALL, places, baseline=tmp_path / "baseline.pt")


def test_the_papers_batches_and_gpus(places):
    jobs = jobs_of("duan-table1", PAPER, places)
    big = jobs["paper/wmt14-en-de/capsule_transformer+recipe-duan+size-big/seed1"]
    base = jobs["paper/wmt14-en-de/capsule_transformer+recipe-duan/seed1"]
    assert (base.gpus, big.gpus) == (2, 3)
    assert words_of(base)[1:5] == ("--gpus", "2", "--effective-tokens", "49152")
    assert words_of(big)[1:5] == ("--gpus", "3", "--effective-tokens", "73728")
    here = jobs_of("duan-table1", PAPER, places, gpus=1)[base.name]
    assert here.gpus == 1 and here.hours == 2 * base.hours
    assert "--gpus" not in words_of(jobs_of("duan-table1", PAPER, places, gpus=0)[base.name])


def test_directions_are_runs_of_their_own_at_the_papers_scale(places):
    names = list(jobs_of("weng-table1", PAPER, places))
    assert sum("wmt14-en-de-100/gret_transformer" in name for name in names) == 2
    assert any("task.source_lang-ro+task.target_lang-en" in name for name in names)
    assert sum("gret_transformer" in name for name in jobs_of("weng-table1", SMALL, places)) == 1


def test_a_dry_run_tells_everything(places):
    jobs = plan(load_table("weng-table5"), SMALL, places)
    text = described(jobs)
    for job in jobs:
        assert f"# {job.name}: {job.gpus} GPUs, about " in text
        for step in job.steps:
            assert step.command[0] in text
    assert "fairseq-capsule probe" in text and "probe.json" in text
    assert text.splitlines()[-1].startswith(f"# {len(jobs)} jobs, about ")


def test_what_waits_for_a_failed_job(places):
    jobs = plan(load_table("weng-table5"), SMOKE, places)
    assert needed_by(jobs, {jobs[0].name}) == {job.name for job in jobs[1:]}
    assert needed_by(jobs, {jobs[-1].name}) == set()
