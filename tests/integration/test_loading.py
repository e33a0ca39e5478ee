"""Loading a trained model, in a process of its own."""

import subprocess
import sys


def test_loading_a_model_prints_nothing(data, trained):
    """The configuration of fairseq and DEBUG logs of libraries are not printed; an inspection prints a summary."""
    program = f"""import logging
before = logging.getLogger().level, logging.getLogger().handlers[:]
from fairseq_capsule.hub import load
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
load('{trained}/checkpoint_last.pt', '{data}')
hub = CapsuleTransformerModel.from_pretrained('{trained}', 'checkpoint_last.pt', '{data}')
import matplotlib.pyplot
assert (logging.getLogger().level, logging.getLogger().handlers) == before
from fairseq_capsule_lab.pages import inspect
print(inspect(hub, "a b")[0])"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    first, *others = done.stdout.splitlines()
    assert first.startswith("sentence 1: ") and len(others) == 4
