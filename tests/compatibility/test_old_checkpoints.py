"""Checkpoints that commit fbd7477 trained load, and translate as they did there."""

import json
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from omegaconf import OmegaConf

from tests.archives import unpack

FOLDER = Path(__file__).parent
EXPECTED = json.loads((FOLDER / "translations.json").read_text())


def translations(path, data):
    """Return two hypotheses of every test sentence with their scores (beam 4), and the score of each reference word."""
    overrides = {"data": str(data)}
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(path)], overrides)
    model.eval()
    task.load_dataset("test")
    generator = task.build_generator([model], OmegaConf.create({"beam": 4, "max_len_b": 10}))
    outputs = {}
    for batch in task.get_batch_iterator(task.dataset("test"), max_sentences=3).next_epoch_itr(shuffle=False):
        with torch.no_grad():
            hypotheses = task.inference_step(generator, [model], batch)
            scores = model.get_normalized_probs(model(**batch["net_input"]), log_probs=True)
        scores = scores.gather(-1, batch["target"].unsqueeze(-1)).squeeze(-1)
        for row, number in enumerate(batch["id"].tolist()):
            outputs[number] = {
                "hypotheses": [
                    {"tokens": best["tokens"].tolist(), "score": float(best["score"])} for best in hypotheses[row][:2]
                ],
                "reference": scores[row][batch["target"][row].ne(1)].tolist(),
            }
    return [outputs[number] for number in sorted(outputs)]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    unpack(FOLDER / "checkpoints.tar.xz", folder)
    return folder


@pytest.mark.parametrize("name", EXPECTED)
def test_an_old_checkpoint_translates_as_before(checkpoints, name):
    translated = translations(checkpoints / f"{name}.pt", FOLDER / "data")
    for got, expected in zip(translated, EXPECTED[name], strict=True):
        for hypothesis, before in zip(got["hypotheses"], expected["hypotheses"], strict=True):
            assert hypothesis["tokens"] == before["tokens"]
            assert hypothesis["score"] == pytest.approx(before["score"], abs=1e-5)
        assert got["reference"] == pytest.approx(expected["reference"], abs=1e-5)
