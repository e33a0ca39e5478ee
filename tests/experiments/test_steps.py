"""The steps of a table: files, command words, resources. Nothing is run."""

import dataclasses
import importlib
import json
import shlex

import pytest
import torch
from hydra.core.override_parser.overrides_parser import OverridesParser

from capsule_routing.errors import UserError
from experiments.tables.definitions import REPOSITORY, load_table, table_names
from experiments.tables.jobs import missing
from experiments.tables.measures import RATIOS
from experiments.tables.results import gather
from experiments.tables.runs import GIVEN, Run, TableRuns, Workspace
from experiments.tables.scales import SCALES, load_scale
from experiments.tables.sources import applies, model_options
from experiments.tables.steps import work_of

SMALL, SMOKE, PAPER = (load_scale(name) for name in ("small", "smoke", "paper"))
TRANSFORMER = "small/multi30k/transformer/seed1"
GRET = "small/multi30k/gret_transformer+on-transformer/seed1"


def of(table, scale, workspace, *arguments, **options):
    return work_of(load_table(table), scale, workspace, *arguments, **options)


def step(work, output):
    (chosen,) = (made for made in work.steps() if made.output == output)
    return chosen


def train(work, run):
    """Return the words of a training."""
    return step(work, f"{run}/finished").words


@pytest.mark.parametrize("scale", SCALES)
def test_every_table_has_steps_in_order(scale, workspace):
    for name in table_names():
        work = of(name, load_scale(scale), workspace)
        steps = work.steps()
        outputs = [step.output for step in steps]
        assert work.cells and set(work.cells) <= set(outputs) and len(set(outputs)) == len(outputs)
        assert all(cell.startswith(f"{scale}/") for cell in work.cells)
        for number, step in enumerate(steps):
            assert set(step.needs) <= set(outputs[:number]) and "\n" not in str(step)
        assert missing(steps, work.cells, workspace.runs) == steps


def test_only_what_a_missing_cell_needs_is_made(workspace):
    work = of("duan-table2", SMALL, workspace, rows=["Transformer", "encoder"])
    steps = work.steps()
    for step in steps:
        (workspace.runs / step.output).parent.mkdir(parents=True, exist_ok=True)
        (workspace.runs / step.output).write_text("{}")

    def after_deleting(*outputs):
        for output in outputs:
            (workspace.runs / output).unlink()
        return [step.kind for step in missing(steps, work.cells, workspace.runs)]

    encoder = "small/multi30k/capsule_transformer+decoder_routing-none/seed1"
    assert after_deleting() == []
    assert after_deleting(f"{encoder}/finished", f"{encoder}/checkpoint_avg_table.pt") == []  # the scores are there
    assert after_deleting(f"{TRANSFORMER}/evaluation/test/scores.json") == ["evaluate", "compare"]
    (workspace.runs / TRANSFORMER / "evaluation/test/scores.json").touch()
    assert after_deleting(f"{encoder}/measures/size.json") == ["train", "average", "measure"]


def test_a_measurement_that_a_killed_shell_left_empty_is_made_again(workspace):
    work = of("duan-table2", SMALL, workspace, rows=["Transformer"])
    measure = next(step for step in work.steps() if step.kind == "measure")
    path = workspace.runs / measure.output
    path.parent.mkdir(parents=True)
    path.touch()
    assert missing([measure], [measure.output], workspace.runs) == [measure]
    path.write_text("{}")
    assert missing([measure], [measure.output], workspace.runs) == []


def test_a_row_starts_from_its_baseline(workspace):
    work = of("weng-table3", SMALL, workspace)
    words = train(work, GRET)
    assert step(work, f"{GRET}/finished").needs == [
        str(workspace.data / "multi30k/manifest.json"),
        f"{TRANSFORMER}/checkpoint_avg_table.pt",
    ]
    assert f"task.init_from_baseline='{workspace.runs / TRANSFORMER}/checkpoint_avg_table.pt'" in words
    assert "optimization.max_epoch=12" not in words
    assert "optimization.max_epoch=12" in train(work, TRANSFORMER)
    assert f"{GRET}/compared/continued+on-transformer/test.json" in work.cells
    compared = step(work, f"{GRET}/compared/continued+on-transformer/test.json")
    continued = "small/multi30k/continued+on-transformer/seed1"
    assert compared.needs[1] == f"{continued}/evaluation/test/scores.json"
    assert compared.words[-2].endswith("/continued+on-transformer/seed1/evaluation/test/generate.out")


def test_a_student_is_trained_on_its_teacher_s_translations(workspace):
    work = of("wang-table2", SMOKE, workspace)
    teacher = "smoke/toy-smoke/transformer+size-big/seed1"
    student = "smoke/toy-smoke/capsnmt+teacher-transformer+size-big/seed1"
    assert f"{teacher}/distilled/manifest.json" in step(work, f"{student}/finished").needs
    assert str(workspace.runs / teacher / "distilled" / "bin") in train(work, student)
    assert step(work, f"{teacher}/distilled/manifest.json").needs[1] == f"{teacher}/finished"


def test_a_run_may_be_compared_with_several(workspace):
    run = "/capsnmt+decoder_norms-after+optimization.clip_norm-0/"
    ours, theirs = (
        [cell for cell in of(name, SMALL, workspace).cells if run in cell and "/compared/" in cell]
        for name in ("comparison", "comparison-variants")
    )
    assert ours and theirs and not set(ours) & set(theirs)


def test_overrides_that_change_nothing_give_the_same_run(workspace):
    """The configuration already has six capsules and three iterations."""
    ours = "small/multi30k/capsnmt/seed1"
    assert ours in of("wang-figure3", SMALL, workspace).runs and ours in of("wang-table1", SMALL, workspace).runs
    names = of("weng-figure4", SMALL, workspace).trainings
    assert GRET in names and "small/multi30k/gret_transformer+global_capsules-16+on-transformer/seed1" in names
    assert len(names) == 2 + 20 and not any("capsules-32" in name or "iterations-3" in name for name in names)


@pytest.mark.parametrize("paper", ["comparison", ""])
def test_a_run_that_was_trained_with_another_schedule_is_refused(paper, workspace):
    """Its name has no schedule, so a table would print it as its own; a table of no paper has the configuration's."""
    table = dataclasses.replace(load_table("comparison"), paper=paper)
    settings = workspace.runs / "paper/multi30k/transformer/seed1/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"config": {"optimization": {"max_epoch": 40}}}))
    work_of(table, PAPER, workspace)
    gather(table, PAPER, workspace)
    settings.write_text(json.dumps({"config": {"optimization": {"max_epoch": 12}}}))
    problem = "/transformer/seed1 was trained with optimization.max_epoch=12, this table has 40; give another folder"
    with pytest.raises(UserError, match=problem):
        work_of(table, PAPER, workspace)
    with pytest.raises(UserError, match=problem):
        gather(table, PAPER, workspace)


def test_runs_that_are_only_timed_are_not_trained(workspace):
    work = of("wang-table3", PAPER, workspace)
    assert len(work.runs) == 4 and not work.trainings and not work.corpora
    output = "paper/wmt14-en-de-50k/capsnmt+recipe-wang/seed1/measures/latency.json"
    latency = step(work, output)
    assert latency.needs == [] and "--beam 8" in latency.line
    assert latency.words[-2:] == ["--device", "cuda"] and latency.gpus == 1
    assert "--device" not in step(of("wang-table3", PAPER, workspace, gpus=0), output).words


def test_a_missing_licensed_corpus_is_named_before_anything_runs(tmp_path):
    workspace = Workspace(tmp_path / "runs", tmp_path / "data", tmp_path)
    work = of("duan-table2", PAPER, workspace)
    with pytest.raises(UserError, match="no folder CWMT here: .* or run scripts/prepare-wmt17-zh-en.sh first"):
        work.refuse_missing_corpora()
    assert str(tmp_path / "CWMT") in step(work, str(workspace.data / "wmt17-zh-en/manifest.json")).words
    (tmp_path / "CWMT").mkdir()
    work.refuse_missing_corpora()
    (tmp_path / "CWMT").rmdir()
    (workspace.data / "wmt17-zh-en").mkdir(parents=True)
    (workspace.data / "wmt17-zh-en" / "manifest.json").touch()  # prepared before
    work.refuse_missing_corpora()


@pytest.mark.parametrize("scale", [SMALL, PAPER], ids=lambda scale: scale.name)
@pytest.mark.parametrize("name", ["zheng-table1", "weng-table3", "weng-table4", "comparison"])
def test_speeds_are_compared_with_a_model_of_the_same_size(name, scale, workspace, monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "experiments/benchmarks")
    systems = importlib.import_module("systems")
    task, table = systems.build_task(1000), load_table(name)
    column = next(column for column in table.columns if column.measure == "speed_generate")
    runs = [TableRuns(table, scale, workspace).run(row, column, 1) for row in table.to_run()]
    measured = [run for run in runs if applies(column, run) and run.config != "capsnmt"]
    assert 1 < len(measured) < len(runs)
    for run in measured:
        arch, words = model_options(run)
        options = dict(map(systems.option, words[1::2]))
        with torch.device("meta"):
            ours = systems.build(arch, task, **{**systems.preset_options(arch), **options})
            theirs = systems.build(systems.baseline_of(arch), task, **systems.baseline_options(arch, **options))
        sizes = [{name: tuple(value.shape) for name, value in model.named_parameters()} for model in (ours, theirs)]
        assert sizes[1].items() <= sizes[0].items(), run.name


def test_several_seeds_are_compared_together(workspace):
    one, several = of("duan-table2", SMALL, workspace), of("duan-table2", SMALL, workspace, [1, 3])
    row = "small/multi30k/capsule_transformer"
    assert f"{row}/seed1/compared/transformer/test.json" in one.cells
    assert [cell for cell in several.cells if cell.startswith(f"{row}/") and "/compared/" in cell] == [
        f"{row}/seeds1_3/compared/transformer/test.json"
    ]
    compared = step(several, f"{row}/seeds1_3/compared/transformer/test.json")
    assert compared.needs == [
        f"small/multi30k/{system}/seed{seed}/evaluation/test/scores.json"
        for seed in (1, 3)
        for system in ("capsule_transformer", "transformer")
    ]
    words = compared.words
    ours, theirs = (
        [str(workspace.runs / f"small/multi30k/{system}/seed{seed}/evaluation/test/generate.out") for seed in (1, 3)]
        for system in ("capsule_transformer", "transformer")
    )
    first = words.index("--baseline")
    assert words[:2] == ["fairseq-capsule", "seeds"] and words[first : first + 4] == [
        *("--baseline", ":".join(theirs)),
        *("--system", ":".join(ours)),
    ]
    timed = [cell for cell in of("comparison", SMALL, workspace, [1, 3]).cells if "/measures/throughput-" in cell]
    assert timed and not any("seed3" in cell for cell in timed)
    single = step(one, f"{row}/seed1/compared/transformer/test.json").words
    assert single[:3] == ["fairseq-capsule", "score", ours[0]]
    assert single[-3:] == ["--against", theirs[0], "--json"]


def test_rows_include_the_runs_that_they_need(workspace):
    work = of("weng-table5", SMOKE, workspace, rows=["Last"])
    assert work.trainings == [
        "smoke/toy-smoke/transformer/seed1",
        "smoke/toy-smoke/gret_transformer+on-transformer/seed1",
        "smoke/toy-smoke/probe+criterion.probe_reads-last+on-gret_transformer+on-transformer/seed1",
    ]
    assert list(work.cells) == [f"{work.trainings[-1]}/measures/probe.json"]


def test_a_given_baseline_is_not_trained(workspace, tmp_path):
    checkpoint = tmp_path / "baseline.pt"
    checkpoint.touch()
    work = of("weng-table3", SMALL, workspace, [1, 2], baseline=checkpoint)
    assert TRANSFORMER not in work.runs and "small/multi30k/given" not in work.trainings
    gret = "small/multi30k/gret_transformer+on-given/seed2"
    given = workspace.runs / "small/multi30k/given/checkpoint_given.pt"
    assert f"task.init_from_baseline='{given}'" in train(work, gret)
    assert "small/multi30k/given/checkpoint_given.pt" in step(work, f"{gret}/finished").needs
    work.adopt(checkpoint)
    work.adopt(checkpoint)
    assert given.resolve() == checkpoint and (given.parent / "finished").is_file()
    assert work.runs["small/multi30k/given"].folder.settings().get("task.source_lang") == "en"
    later = of("weng-table3", SMALL, workspace)  # a later call uses it
    assert TRANSFORMER not in later.runs and "small/multi30k/gret_transformer+on-given/seed1" in later.runs
    given.unlink()  # an archive of results has no checkpoints
    packed = of("weng-table3", SMALL, workspace)
    assert "small/multi30k/gret_transformer+on-given/seed1" in packed.runs
    given.symlink_to(checkpoint)
    other = tmp_path / "other.pt"
    other.touch()
    with pytest.raises(UserError, match="the baseline of an earlier call"):
        of("weng-table3", SMALL, workspace, baseline=other)


def test_the_path_of_a_baseline_is_one_value_for_hydra(tmp_path):
    workspace = Workspace(tmp_path / "a, b=[c] runs", tmp_path / "data")
    words = train(of("weng-table3", SMALL, workspace), GRET)
    (word,) = (word for word in words if word.startswith("task.init_from_baseline="))
    parsed = OverridesParser.create().parse_override(word)
    assert not parsed.is_sweep_override()
    assert parsed.value() == str(workspace.runs / TRANSFORMER / "checkpoint_avg_table.pt")


def test_a_given_baseline_is_the_teacher(workspace, tmp_path):
    checkpoint = tmp_path / "baseline.pt"
    checkpoint.touch()
    work = of("wang-table2", SMALL, workspace, baseline=checkpoint)
    assert not any("transformer" in name for name in work.runs)
    student = step(work, "small/multi30k/capsnmt+teacher-given/seed1/finished")
    assert "small/multi30k/given/distilled/manifest.json" in student.needs
    assert step(work, "small/multi30k/given/distilled/manifest.json").kind == "distil"


def test_a_baseline_that_no_row_needs_is_refused(workspace, tmp_path):
    (tmp_path / "baseline.pt").touch()
    with pytest.raises(UserError, match="no row of duan-table2 starts from"):
        of("duan-table2", SMALL, workspace, baseline=tmp_path / "baseline.pt")


def test_batches_and_resources_are_those_of_the_papers(workspace):
    work = of("duan-table1", PAPER, workspace)
    run = "paper/wmt14-en-de/capsule_transformer+recipe-duan"
    base, big = (step(work, f"{name}/seed1/finished") for name in (run, f"{run}+size-big"))
    assert (base.gpus, big.gpus) == (2, 3)
    assert base.words[1:5] == ["--gpus", "2", "--effective-tokens", "49152"]
    assert big.words[1:5] == ["--gpus", "3", "--effective-tokens", "73728"]
    assert base.megabytes == 32000
    assert step(of("duan-table1", PAPER, workspace, gpus=1), base.output).gpus == 1
    assert "--gpus" not in step(of("duan-table1", PAPER, workspace, gpus=0), base.output).words


@pytest.mark.parametrize(
    "table, run, gpus, max_tokens",
    [
        ("duan-table1", "wmt14-en-de/transformer+recipe-duan", None, 24576),  # of 2 GPUs
        ("duan-table1", "wmt14-en-de/transformer+recipe-duan", 1, 24576),  # two batches of one GPU
        ("duan-table1", "wmt14-en-de/transformer+recipe-duan+size-big", 1, 24576),
        ("zheng-table2", "wmt14-en-de/transformer+recipe-zheng", None, 4096),
        ("wang-table1", "wmt14-en-de-50k/capsnmt+recipe-wang", 2, 16384),
    ],
)
def test_a_larger_gpu_takes_larger_batches_and_the_paper_s_batch_stays(workspace, table, run, gpus, max_tokens):
    work = of(table, PAPER, workspace, gpus=gpus, precision="bf16", max_tokens=32768)
    words = train(work, f"paper/{run}/seed1")
    assert words[words.index("--precision") + 1] == "bf16" and f"dataset.max_tokens={max_tokens}" in words
    used, tokens = (int(words[words.index(option) + 1]) for option in ("--gpus", "--effective-tokens"))
    assert tokens % (used * max_tokens) == 0
    on_cpu = train(of(table, PAPER, workspace, gpus=0, max_tokens=32768), f"paper/{run}/seed1")
    assert "dataset.max_tokens" not in " ".join(on_cpu)


def test_at_paper_scale_each_direction_is_a_separate_run(workspace):
    names = of("weng-table1", PAPER, workspace).trainings
    assert sum("wmt14-en-de-100/gret_transformer" in name for name in names) == 2
    assert any("task.source_lang-ro+task.target_lang-en" in name for name in names)
    assert sum("gret_transformer" in name for name in of("weng-table1", SMALL, workspace).trainings) == 1


@pytest.mark.parametrize("measure", RATIOS)
def test_no_model_has_a_ratio_to_itself(measure, workspace):
    """Its ratio is 1.00 by definition and is not measured. Every table with such a column has a row without it."""
    timed = 0
    for name in table_names():
        table = load_table(name)
        for column in (column for column in table.columns if column.measure == measure):
            runs = [TableRuns(table, PAPER, workspace).run(row, column, 1) for row in table.to_run()]
            own = [run for run in runs if run.config in ("transformer", "lstm", GIVEN)]
            assert own and not any(applies(column, run) for run in own)
            assert any(applies(column, run) for run in runs)
            timed += 1
    assert timed


def test_the_language_of_lengths_is_that_of_the_corpus(workspace):
    """Outputs that are not tokenised need it."""
    words = step(of("weng-figure5", SMALL, workspace), f"{TRANSFORMER}/measures/length-groups.json").words
    assert words[words.index("--lang") + 1] == "de"


def test_a_step_is_one_line_for_a_shell(workspace):
    work = of("duan-table2", SMALL, workspace)
    for step in work.steps():
        words = shlex.split(str(step), comments=True)
        assert words[: len(step.words)] == list(step.words) and step.log in words
        assert not step.prints or words[-1] == step.output


def test_different_overrides_have_different_names():
    """Different runs never share a folder."""
    setup = SMOKE.setup("duan", "wmt17-zh-en", False)
    words = ["model.dropout=1", "task.dropout=1", "criterion.dropout=1", "model.size=big", "task.size=big"]
    words += ["model.dropout=0.5", "model.dropout=1.5"]
    words += ["checkpoint.restore_file=/a/b", "checkpoint.restore_file=-a-b"]
    runs = [Run("smoke", setup, "transformer", (word,), 1) for word in words]
    piece = dataclasses.replace(setup, overrides=(*setup.overrides, "size=big"))
    runs += [Run("smoke", setup, "transformer", (), 1), Run("smoke", piece, "transformer", (), 1)]
    assert len({run.name for run in runs}) == len(runs)
    assert runs[0].title == "transformer+dropout-1"
