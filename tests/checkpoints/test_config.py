"""Which configs are data: tested by properties, and with everything that fairseq and this package write."""

import ast
import contextlib
import dataclasses
import io
import re
import sys
from argparse import Namespace
from pathlib import Path

import fairseq
import pytest
from fairseq import options, registry, utils
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.models.fconv import FConvModel
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from hypothesis import given, settings
from hypothesis import strategies as st

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.config import FREE_TEXT, check_config, literal
from tests.checkpoints.expressions import CALLED, EXPRESSIONS
from tests.checkpoints.marker import MARKER

FAIRSEQ = Path(fairseq.__file__).parent
OPTIONS = st.sampled_from(["decoder_attention", "adaptive_softmax_cutoff", "encoder_layers", "lr", "beam"])


def accepted(**values):
    try:
        check_config({"args": Namespace(**values)})
    except UserError:
        return False
    return True


@settings(max_examples=200)
@given(EXPRESSIONS, OPTIONS)
def test_accepted_text_has_no_effect_when_evaluated(audited, text, option):
    if not accepted(**{option: text}):
        return
    with audited() as events, contextlib.suppress(Exception):
        eval(text, vars(sys.modules["fairseq.models.fconv"]).copy())
    assert set(events) <= {"compile", "exec", "object.__getattr__"}


@settings(max_examples=100)
@given(CALLED, OPTIONS)
def test_text_with_a_call_is_refused(text, option):
    assert not accepted(**{option: text})
    assert not accepted(**{option: [text]})
    assert not accepted(**{option: {"a": (text,)}})
    assert not accepted(**{option: text.encode()})
    with contextlib.suppress(ValueError):
        utils.eval_str_dict(text)  # the call may be a text in it, which is not evaluated
    assert not MARKER.exists()


WORDS = st.text(st.characters(categories="L"))
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
DATA = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner) | st.tuples(inner),
    max_leaves=10,
)


@given(DATA)
def test_data_is_accepted_and_read(value):
    assert accepted(x=value)
    assert literal(repr(value)) == value
    assert accepted(x=repr(value))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "@@ ",
            "0.9,0.98",
            "(0.9,0.98)",
            "[0.1, 0.2]",
            "en-de,de-en",
            "zh_CN",
            "swish",
            "1e-3",
            "<s>",
            "a|b",
            "#",
            "",
        ),
        *(
            '{"beam": 5, "max_len_a": 1.2, "sampling": false, "x": null}',
            "{'a': 1}",
            "???",
            "tanh",
            "▁",
            "valid,valid1",
        ),
        *("[(512, 3)] * 9 + [(1024, 3)] * 4 + [(2048, 1)] * 2", "[(256, 3)]*4", "2 * [1]", "+1.5", "[-1]", "True"),
    ],
)
def test_texts_of_real_checkpoints_are_accepted(text):
    assert accepted(x=text)


@pytest.mark.parametrize(
    "option, value",
    [
        ("data", "some (odd) folder/$HOME [1]='x'"),
        ("bpe_codes", "codes(1)"),
        ("save_dir", "s3://bucket/run"),
        ("distributed_init_method", "tcp://localhost:1234"),
        ("gpt2_encoder_json", "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe/encoder.json"),
        ("wandb_project", "trials (new)"),
    ],
)
def test_free_text_options_are_accepted(option, value):
    assert accepted(**{option: value})


def test_the_logging_config_of_hydra_is_accepted():
    logging = {"formatters": {"simple": {"format": "[%(asctime)s] - %(message)s"}}, "stream": "ext://sys.stdout"}
    check_config({"cfg": {"job_logging_cfg": {"version": 1, **logging}}})


def test_what_fairseq_writes_by_default_is_accepted():
    """Check every architecture as `fairseq-train --arch` fills it in, and every component with a dataclass."""
    parsed = 0
    for arch in sorted(ARCH_MODEL_REGISTRY):
        with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):  # some have required options
            args = options.parse_args_and_arch(options.get_training_parser(), ["data", "--arch", arch])
            check_config({"args": args})
            parsed += 1
    assert parsed > 100
    registries = [entry["dataclass_registry"] for entry in registry.REGISTRIES.values()]
    for components in (TASK_DATACLASS_REGISTRY, MODEL_DATACLASS_REGISTRY, *registries):
        for name, component in components.items():
            defaults = {item.name: item.default for item in dataclasses.fields(component)}
            given_ones = {
                key: value
                for key, value in defaults.items()
                if isinstance(value, str) and not value.startswith("${")  # resolved before it is saved
            }
            assert accepted(**given_ones), name


def calls_of(path, names):
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "eval" in text.replace(".eval()", "") else ():
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in names:
                yield called, node


def sources():
    return [path for path in FAIRSEQ.rglob("*.py") if "examples" not in path.parts]


EVALUATING = ("eval", *(f"{prefix}{name}" for prefix in ("", "utils.", "options.") for name in (
    "eval_str_list", "eval_str_dict", "eval_bool"
)))  # fmt: skip


def test_no_option_that_fairseq_evaluates_is_free_text():
    evaluated = set()
    for path in sources():
        for _, node in calls_of(path, EVALUATING):
            parts = [part for argument in node.args for part in ast.walk(argument)]
            evaluated |= {part.attr for part in parts if isinstance(part, ast.Attribute)}
    assert {"decoder_attention", "adaptive_softmax_cutoff", "conv_feature_layers"} <= evaluated
    assert not [name for name in evaluated if FREE_TEXT.fullmatch(name)]


def test_eval_in_fairseq_is_replaced_by_a_reader_of_literals():
    for path in sources():
        if any(True for _ in calls_of(path, ["eval"])):
            name = ".".join(["fairseq", *path.relative_to(FAIRSEQ).with_suffix("").parts])
            name = name.removesuffix(".__init__")
            if name in sys.modules:
                assert sys.modules[name].eval is literal, name
    assert utils.eval_str_list("4,8", int) == options.eval_str_list("(4, 8)", int) == [4, 8]
    assert utils.eval_str_list("0.5") == [0.5]
    assert utils.eval_bool("True") and utils.eval_bool("1") and not utils.eval_bool("0") and not utils.eval_bool(None)
    assert utils.eval_bool(b"1", default=True) is True
    assert utils.eval_str_dict("{'a': 1}") == {"a": 1}
    assert FConvModel


# Files of fairseq, apart from its commands, that write files or start processes. A person has checked that no config
# can reach this code. Check a new file before you add it here.
WRITES = {
    *("criterions/sentence_ranking.py", "modules/dynamicconv_layer/cuda_function_gen.py", "file_utils.py"),
    *("modules/lightconv_layer/cuda_function_gen.py", "data/indexed_dataset.py", "data/dictionary.py"),
    *("data/huffman/huffman_coder.py", "data/huffman/huffman_mmap_indexed_dataset.py", "checkpoint_utils.py"),
}
STARTS = {"tasks/audio_pretraining.py", "data/plasma_utils.py", "data/fasta_dataset.py", "distributed/utils.py"}


def test_every_place_where_fairseq_writes_or_starts_something_is_known():
    texts = {str(path.relative_to(FAIRSEQ)): path.read_text(encoding="utf-8") for path in sources()}
    opening = re.compile(r"""open\(.*["'][wa]b?["']""")
    assert {name for name, text in texts.items() if opening.search(text)} <= WRITES
    starting = re.compile(r"subprocess\.\w+\(|os\.(system|popen|exec|spawn)")
    assert {name for name, text in texts.items() if starting.search(text)} <= STARTS
