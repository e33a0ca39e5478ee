"""Every configuration in configs/ builds its model: systems and the config groups that they use."""

from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import MODEL_DATACLASS_REGISTRY, build_model
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from fairseq_capsule.options import readings
from tests.zoo import make_task

CONFIGS = Path(__file__).parent.parent / "configs"
PAPERS = {"wmt14-en-de", "wmt14-en-fr", "wmt16-en-ro", "wmt17-zh-en", "nist-zh-en", "lcsts"}
CORPORA = {"toy", "multi30k", "ja-en", "headlines", "own", *PAPERS}
OWN_WIDTHS = {"tiny": 128, "base": 512, "big": 1024}
OWN_SYSTEMS = [path for path in sorted((CONFIGS / "own").glob("*.yaml")) if "\ndefaults:" in path.read_text()]
SYSTEMS = sorted(
    path for name in CORPORA for path in (CONFIGS / name).glob("*.yaml") if "\ndefaults:" in path.read_text()
)
GROUPS = sorted(path for name in CORPORA for path in (CONFIGS / name).glob("*/*.yaml"))


@cache
def composed(folder, name, *overrides):
    with initialize_config_dir(str(folder), version_base="1.1"):
        return compose(name, overrides, return_hydra_config=True)


def built(config):
    """Build the model without parameter values, so that a Big model takes no time."""
    model = OmegaConf.create(OmegaConf.to_container(config.model, resolve=True))
    with torch.device("meta"):
        return build_model(model, make_task())


def width(config):
    return config.model.get("encoder_embed_dim", 512 if config.model._name.endswith("_base") else 128)


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_configuration_builds_its_model(path):
    config = composed(path.parent, path.stem)
    assert built(config).encoder.embed_tokens.embedding_dim == width(config)
    assert config.task._name in TASK_REGISTRY and config.criterion._name in CRITERION_REGISTRY
    assert set(config.task) <= {item.name for item in fields(TASK_DATACLASS_REGISTRY[config.task._name])}
    if config.task.get("eval_rouge"):  # fairseq would leave out sentences of the validation set
        assert config.dataset.required_batch_size_multiple == 1
    assert config.hydra.job.chdir is False
    assert config.optimization.max_update or config.optimization.max_epoch
    assert f"configs/{path.parent.name} --config-name {path.stem} " in path.read_text()


@pytest.mark.parametrize("path", GROUPS, ids=lambda path: f"{path.parts[-3]}/{path.parent.name}={path.stem}")
def test_every_config_group_fits_its_systems(path):
    """A `recipe` fits every system that uses recipes; a `size` those whose model has all its options."""
    folder, group = path.parent.parent, path.parent.name
    if folder.name == "own":
        return  # the next test covers it
    systems = [system.stem for system in folder.glob("*.yaml") if f"  - {group}: " in system.read_text()]
    if group == "recipe":
        assert systems and all(built(composed(folder, system, f"recipe={path.stem}")) for system in systems)
        return
    options = OmegaConf.load(path).model
    fitting = [
        system
        for system in systems
        if set(options)
        <= {item.name for item in fields(MODEL_DATACLASS_REGISTRY[composed(folder, system).model._name])}
    ]
    assert fitting, "the model of no system has all these options"
    for system in fitting:
        model = built(composed(folder, system, f"size={path.stem}"))
        assert model.encoder.embed_tokens.embedding_dim == options.encoder_embed_dim


@pytest.mark.parametrize("path", OWN_SYSTEMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("size, share", [("tiny", "separate"), ("base", "joint"), ("big", "separate")])
def test_systems_of_the_user_accept_every_config_group(path, size, share):
    recipe = {"tiny": "10k", "base": "100k", "big": "1m"}[size]
    config = composed(path.parent, path.stem, f"size={size}", f"share={share}", f"recipe={recipe}")
    width = 2 * OWN_WIDTHS[size] if path.stem.endswith("lstm") and size == "tiny" else OWN_WIDTHS[size]
    model = built(config)
    assert model.encoder.embed_tokens.embedding_dim == width
    assert (model.encoder.embed_tokens is model.decoder.embed_tokens) == (share == "joint")
    assert config.task.source_lang is None and config.task.target_lang is None
    assert config.dataset.required_batch_size_multiple == 1
    assert config.optimization.max_update or config.optimization.max_epoch
    assert isinstance(config.optimization.lr[0], (int, float)) and config.optimization.lr[0] < 0.01


@pytest.mark.parametrize(
    "path", [path for path in SYSTEMS if path.stem == "capsnmt"], ids=lambda path: path.parent.name
)
def test_gradients_of_capsnmt_are_clipped(path):
    assert composed(path.parent, path.stem).optimization.clip_norm == 1


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_configuration_names_its_reading(path):
    """So that a run folder of another reading refuses to continue: a training takes its options from here."""
    config = composed(path.parent, path.stem)
    assert readings(built(config).cfg).keys() <= config.model.keys()


def test_every_folder_is_known():
    assert {path.name for path in CONFIGS.iterdir() if path.is_dir()} == {*CORPORA, "scales", "tables"}
