"""The defaults that documents promise are those of the commands, of their help and of the configurations."""

import inspect
from pathlib import Path

import click
import pytest
import yaml

from fairseq_capsule_lab import defaults, pages
from fairseq_capsule_lab.cli import fairseq_capsule
from fairseq_capsule_lab.corpora.own import OWN
from fairseq_capsule_lab.pages.server import Translator

ROOT = Path(__file__).parents[1]
D = defaults
PROMISED = {
    "docs/evaluation.md": [f"those of the configuration; {D.BEAM}, {D.LENGTH_PENALTY:g} and {D.NBEST} if it has none"],
    "scripts/generate.sh": [
        f"of the decoding ({D.BEAM}, {D.LENGTH_PENALTY:g})",
        f"tokens in a batch ({D.MAX_TOKENS:,})",
        f"decoding=(--max-tokens {D.MAX_TOKENS})",
    ],
    "docs/capsnmt.md": [f"# beam {D.TEACHER_BEAM}, length penalty {D.TEACHER_LENGTH_PENALTY}, the paper's"],
    "docs/your-own-corpus.md": [
        f"| `--merges N` | {D.MERGES:,} merges, or pieces |",
        f"a sentence has more than {D.MAX_LENGTH} words (`--max-length {D.MAX_LENGTH}`",
        f"`--ratio {D.RATIO}`",
        f"| tens of thousands | tiny | {D.MERGES:,} | {D.DROPOUT} |",
    ],
}


@pytest.mark.parametrize("page", PROMISED)
def test_documents_state_the_defaults(page):
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    for promise in PROMISED[page]:
        assert promise in text


def options_of_commands(name):
    """Yield (command, default, help) of every command with an option of this name."""
    groups = [(fairseq_capsule, "")]
    while groups:
        command, path = groups.pop()
        context = click.Context(command)
        if isinstance(command, click.Group):
            names = command.list_commands(context)
            groups += [(command.get_command(context, each), f"{path} {each}") for each in names]
        for parameter in command.params:
            if f"--{name}" in parameter.opts:
                yield path.strip(), parameter.default, parameter.help


@pytest.mark.parametrize(
    "option, value, of_teacher",
    [
        ("beam", D.BEAM, D.TEACHER_BEAM),
        ("lenpen", D.LENGTH_PENALTY, D.TEACHER_LENGTH_PENALTY),
        ("nbest", D.NBEST, None),
    ],
)
def test_every_command_decodes_by_the_defaults(option, value, of_teacher):
    found = {command: (default, text) for command, default, text in options_of_commands(option)}
    default, text = found.pop("evaluate")  # where the configuration comes first
    assert not isinstance(default, (int, float)) and text.endswith(f"of the configuration, or {value:g}]")
    assert (found.pop("distill")[0] if of_teacher else None) == of_teacher
    assert {command: default for command, (default, _) in found.items()} == dict.fromkeys(found, value)


def test_pages_decode_by_the_defaults():
    for function in (pages.inspect, Translator):
        assert inspect.signature(function).parameters["beam"].default == D.BEAM


def test_own_text_is_prepared_by_the_defaults():
    values = {option.name: option.default for option in OWN.options}
    assert (values["merges"], values["max-length"], values["ratio"]) == (D.MERGES, D.MAX_LENGTH, D.RATIO)


@pytest.mark.parametrize("config", sorted((ROOT / "configs/own").glob("*.yaml")), ids=lambda path: path.stem)
def test_configurations_of_own_text_have_the_default_dropout(config):
    assert yaml.safe_load(config.read_text(encoding="utf-8"))["model"]["dropout"] == D.DROPOUT
