"""Which options are data: what fairseq writes, and all that it evaluates."""

import ast
import contextlib
import dataclasses
import io
import re
from argparse import Namespace
from pathlib import Path

import fairseq
import pytest
from fairseq import options, registry
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from hypothesis import given
from hypothesis import strategies as st

from fairseq_capsule.checkpoints.safe_options import FREE_TEXT, check_config

FAIRSEQ = Path(fairseq.__file__).parent
WORDS = st.text(st.characters(categories="L"))
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
DATA = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner) | st.tuples(inner))


def check(**values):
    check_config({"args": Namespace(**values)})


@given(DATA)
def test_data_is_accepted(value):
    check(x=value)
    check(x=repr(value))


@pytest.mark.parametrize(
    "option, value",
    [
        *(("x", text) for text in ("@@ ", "(0.9,0.98)", "en-de,de-en", "1e-3", "<s>", "a|b", "#", "???", "▁", "[-1]")),
        ("x", '{"beam": 5, "max_len_a": 1.2, "sampling": false, "x": null}'),
        ("x", "[(512, 3)] * 9 + [(1024, 3)] * 4 + [(2048, 1)] * 2"),
        ("adam_betas", "(0.9, 1-0.02)"),
        ("data", "some (odd) folder/HOME [1]='x'"),
        ("bpe_codes", "codes(1)"),
        ("bpe_codes", "???"),  # only --bpe subword_nmt
        ("save_dir", "s3://bucket/run"),
        ("distributed_init_method", "tcp://localhost:1234"),
        ("gpt2_encoder_json", "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe/encoder.json"),
        ("wandb_project", "trials (new)"),
    ],
)
def test_options_of_real_checkpoints_are_accepted(option, value):
    check(**{option: value})


def test_the_logging_config_of_hydra_is_accepted():
    logging = {"formatters": {"simple": {"format": "[%(asctime)s] - %(message)s"}}, "stream": "ext://sys.stdout"}
    check_config({"cfg": {"job_logging_cfg": {"version": 1, **logging}}})


def test_what_fairseq_writes_by_default_is_accepted():
    """Check every architecture as `fairseq-train --arch` fills it in, and every component with a dataclass."""
    parsed = 0
    for arch in sorted(ARCH_MODEL_REGISTRY):
        with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):  # some have required options
            check_config({"args": options.parse_args_and_arch(options.get_training_parser(), ["data", "--arch", arch])})
            parsed += 1
    assert parsed > 100
    registries = [entry["dataclass_registry"] for entry in registry.REGISTRIES.values()]
    for components in (TASK_DATACLASS_REGISTRY, MODEL_DATACLASS_REGISTRY, *registries):
        for name, component in components.items():
            defaults = {item.name: item.default for item in dataclasses.fields(component)}
            texts = {key: value for key, value in defaults.items() if isinstance(value, str) and "${" not in value}
            check(**{**texts, "arch": name})


def sources():
    return [path for path in FAIRSEQ.rglob("*.py") if "examples" not in path.parts]


def test_no_option_that_fairseq_evaluates_is_free_text():
    evaluating = re.compile(r"(utils\.|options\.)?(eval|eval_str_list|eval_str_dict|eval_bool)")
    evaluated = set()
    for path in sources():
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "eval" in text else ():
            if isinstance(node, ast.Call) and evaluating.fullmatch(ast.unparse(node.func)):
                parts = [part for argument in node.args for part in ast.walk(argument)]
                evaluated |= {part.attr for part in parts if isinstance(part, ast.Attribute)}
    assert {"decoder_attention", "adaptive_softmax_cutoff", "conv_feature_layers"} <= evaluated
    of_optimisers = {"adam_betas", "adamax_betas", "lamb_betas", "adafactor_eps"}
    assert {name for name in evaluated if FREE_TEXT.fullmatch(name)} <= of_optimisers
