"""`fairseq-capsule table` and `fairseq-capsule reproduce`: what they print, and what they refuse in one line."""

import pytest

from fairseq_capsule_lab.cli import main
from fairseq_capsule_lab.tables.definitions import table_names


def refused(capsys, *arguments):
    assert main([*map(str, arguments)]) == 1
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_tables_are_listed(capsys):
    assert main(["table"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == table_names()


def test_an_option_without_a_table_is_refused(capsys):
    assert main(["table", "--curves"]) == 2
    assert "Missing argument 'TABLE'" in capsys.readouterr().err


def test_a_table_without_runs_is_printed_and_written(tmp_path, capsys):
    assert (
        main(["table", "weng-table2", "--scale", "small", "--runs", str(tmp_path), "--out", str(tmp_path / "out")]) == 0
    )
    printed = capsys.readouterr().out
    assert "| GRET | 44.77 | missing | 30.96 | missing | 41.21 | missing |" in printed
    assert (tmp_path / "out" / "weng-table2.md").read_text() in printed
    assert (tmp_path / "out" / "weng-table2.csv").is_file()


@pytest.mark.parametrize("command", ["table", "reproduce"])
def test_unknown_tables_and_scales_are_refused(capsys, tmp_path, command):
    assert "no table 'nope'" in refused(capsys, command, "nope", "--runs", tmp_path)
    assert "no scale 'huge'" in refused(capsys, command, "duan-table2", "--scale", "huge", "--runs", tmp_path)
    assert not list(tmp_path.iterdir())


def test_tables_need_a_checkout(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("fairseq_capsule_lab.tables.definitions.CONFIGS", tmp_path / "configs")
    assert "no tables; they belong to a checkout" in refused(capsys, "table")


def dry_run(capfd, tmp_path, name, *arguments):
    places = ["--runs", tmp_path / "runs", "--data", tmp_path / "data"]
    assert main(["reproduce", name, "--dry-run", *map(str, [*places, *arguments])]) == 0
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
    assert all(line.count(" # gpu=") == 1 for line in printed.splitlines())  # one line a step


def test_an_unknown_launcher_is_refused(capsys, tmp_path):
    message = refused(capsys, "reproduce", "duan-table2", "--launcher", "nowhere", "--runs", tmp_path / "runs")
    assert "none of local, slurm, and no folder" in message and not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["table", "reproduce"])
def test_a_figure_of_a_table_without_one_is_refused(capsys, tmp_path, command):
    message = refused(capsys, command, "duan-table2", "--figure", "--runs", tmp_path / "runs")
    assert "the definition of duan-table2 does not say what to draw" in message and not list(tmp_path.iterdir())
