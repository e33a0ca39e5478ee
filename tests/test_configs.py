"""Every YAML file of configs/ builds its model."""

from dataclasses import fields
from pathlib import Path

import pytest
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import build_model
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from omegaconf import OmegaConf

from tests.zoo import make_task

CONFIGS = Path(__file__).parent.parent / "configs"
FILES = sorted(CONFIGS.rglob("*.yaml"))
WIDTHS = {"gdr_lstm": 256, "gret_transformer_base": 512}  # all others are tiny


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_builds(path):
    config = OmegaConf.load(path)
    model = build_model(OmegaConf.create({"model": OmegaConf.to_container(config.model)}).model, make_task())
    assert model.encoder.embed_tokens.embedding_dim == WIDTHS.get(config.model._name, 128)
    assert config.task._name in TASK_REGISTRY and config.criterion._name in CRITERION_REGISTRY
    assert set(config.task) <= {item.name for item in fields(TASK_DATACLASS_REGISTRY[config.task._name])}
    if config.task.get("eval_rouge"):  # fairseq would leave out sentences of the validation set
        assert config.dataset.required_batch_size_multiple == 1
    assert config.hydra.job.chdir is False
    assert f"configs/{path.parent.name} --config-name {path.stem} " in path.read_text()


def test_there_are_configs():
    assert {path.parent.name for path in FILES} == {"toy", "multi30k", "headlines", "lcsts"}
