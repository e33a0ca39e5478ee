"""Forks of the server start warm, and start processes as the real commands do."""

from tests.processes import PRELOADED, run_code, run_without_fairseq


def test_a_fork_has_imported_what_takes_long(tmp_path, monkeypatch):
    """`multiprocessing` ignores a module that it cannot import."""
    monkeypatch.chdir(tmp_path)
    done = run_code("import sys; print([name for name in sys.argv[1:] if name not in sys.modules])", PRELOADED)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_fork_knows_the_texts_of_options():
    code = "from tests.hydra_store import parsed; print(parsed.cache_info().currsize)"
    assert int(run_code(code, []).stdout) > 200


def test_a_fork_starts_its_processes_as_the_real_command():
    code = "import multiprocessing as m; print(m.get_start_method())"
    assert run_code(code, []).stdout == "fork\n"


def test_a_fork_without_fairseq_finds_none_of_its_modules(tmp_path):
    for code in ("import fairseq", "from fairseq.utils import softmax"):
        finished = run_without_fairseq(code, tmp_path)
        assert finished.returncode == 1 and "ModuleNotFoundError: import of fairseq" in finished.stderr
