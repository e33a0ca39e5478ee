"""`scripts/reproduce.sh`: what it prints, and what it refuses in one line."""

import re

import pytest

from experiments.reproduce import main
from experiments.tables.definitions import REPOSITORY, table_names


def refused(capsys, *arguments):
    assert main([*map(str, arguments)]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_tables_are_listed(capsys):
    assert main([]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == table_names()


def test_an_option_without_a_table_is_refused(capsys):
    assert main(["--curves"]) == 2
    assert "Missing argument 'TABLE'" in capsys.readouterr().err


def test_a_table_without_runs_is_printed_and_written(tmp_path, capsys):
    places = ["--runs", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(["weng-table2", "--print", "--scale", "small", *places]) == 0
    printed = capsys.readouterr().out
    assert "| GRET | 44.77 | missing | 30.96 | missing | 41.21 | missing |" in printed
    assert (tmp_path / "out" / "weng-table2.md").read_text() in printed
    assert (tmp_path / "out" / "weng-table2.csv").is_file()


@pytest.mark.parametrize("words", [["--print"], []])
def test_unknown_tables_and_scales_are_refused(capsys, tmp_path, words):
    assert "no table 'nope'" in refused(capsys, "nope", *words, "--runs", tmp_path)
    assert "no scale 'huge'" in refused(capsys, "duan-table2", *words, "--scale", "huge", "--runs", tmp_path)
    assert not list(tmp_path.iterdir())


def dry_run(capfd, tmp_path, name, *arguments):
    places = ["--runs", tmp_path / "runs", "--data", tmp_path / "data"]
    assert main([name, "--dry-run", *map(str, [*places, *arguments])]) == 0
    printed = capfd.readouterr()
    assert not list(tmp_path.iterdir())  # a dry run changes nothing
    return printed.out + printed.err


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_dry_run_prints_every_command_with_what_it_needs(capfd, tmp_path, monkeypatch, gpus):
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    printed = dry_run(capfd, tmp_path, "weng-table5", "--scale", "small", "--seeds", "2-3", "--rows", "Last")
    assert "common.seed=2 " in printed and "common.seed=3 " in printed and "common.seed=1 " not in printed
    for command in ("prepare-multi30k.sh", "train.sh", "average", "fairseq-capsule probe"):
        assert command in printed
    assert ("gpu=1" in printed) == ("--gpus 1" in printed) == bool(gpus)
    assert "runtime=" in printed and "mem_mb=8000" in printed
    *steps, total = printed.splitlines()
    assert all(line.count(" # gpu=") == 1 for line in steps)  # one line a step
    assert re.fullmatch(r"# 6 trainings, \d\.\d hours of a CPU core, \d GB of disk, without evaluation", total)


def test_a_dry_run_ends_with_what_the_missing_steps_cost(capfd, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    printed = dry_run(capfd, tmp_path, "duan-table1", "--rows", "Transformer-Base", "--precision", "bf16")
    first, *_, total, conditions = printed.splitlines()
    assert first.startswith("# this machine has no GPU") and "--precision" not in printed.splitlines()[1]
    assert total == "# 2 trainings, 23 hours of one H100, 4.9 hours of a CPU core, 77 GB of disk, without evaluation"
    assert conditions.startswith("# by the speeds of docs/speed.md, with --precision bf16 --max-tokens 32768; ")


def test_a_plugin_of_our_own_table_is_found_from_any_folder(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = dry_run(capfd, tmp_path, "ablation", "--rows", "+ feed-forward layers")
    assert f"--user-dir {REPOSITORY}/examples/controls " in printed


def test_an_unknown_launcher_is_refused(capsys, tmp_path):
    message = refused(capsys, "duan-table2", "--launcher", "nowhere", "--runs", tmp_path / "runs")
    assert "none of local, slurm, and no folder" in message and not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--print"], []])
def test_a_figure_of_a_table_without_one_is_refused(capsys, tmp_path, words):
    message = refused(capsys, "duan-table2", *words, "--figure", "--runs", tmp_path / "runs")
    assert "the definition of duan-table2 does not say what to draw" in message and not list(tmp_path.iterdir())
