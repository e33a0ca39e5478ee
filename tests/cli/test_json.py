"""`--json`: stdout is one JSON object and nothing else. The commands that have the option are found in the tree."""

import json

import pytest

from fairseq_capsule.root_logger import unchanged_root_logger
from fairseq_capsule_lab.cli import main
from tests.cli.test_bad_arguments import WORKS, require_libraries
from tests.test_help import LEAVES

HAVE_JSON = [name for name, leaf in LEAVES.items() if any("--json" in param.opts for param in leaf.params)]
# A plugin that prints and logs, as programs of fairseq do.
PLUGIN = """
import logging, os, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, force=True)
logging.getLogger("fairseq.tasks").info("logged")
print("printed")
"""


@pytest.mark.parametrize("name", HAVE_JSON)
def test_stdout_is_one_json_object(name, world, tmp_path, monkeypatch, capfd):
    require_libraries(name)
    monkeypatch.chdir(world)
    monkeypatch.setattr("fairseq_capsule_lab.analysis.output._drawn", lambda figure, suffix: b"")
    plugin = tmp_path / "plugin" / f"prints_{HAVE_JSON.index(name)}"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(PLUGIN)
    words = WORKS[name].format(tmp_path).replace("--json", "")
    with unchanged_root_logger():
        assert main(["--user-dir", str(plugin), *name.split(), *words.split(), "--json"]) == 0
    printed = capfd.readouterr()
    assert isinstance(json.loads(printed.out), dict) and printed.out.count("\n") == 1
    assert "printed\n" in printed.err and "logged\n" in printed.err
    assert main([*name.split(), *words.split()]) == 0
    assert capfd.readouterr().out.splitlines()[-1] in printed.err.splitlines()  # the lines for readers
