"""A training by fairseq-train continues a checkpoint only with the reading of the paper that it was trained with."""

import pytest
import torch

from fairseq_capsule_lab.cli import main
from tests.integration.commands import last_line, train


@pytest.mark.parametrize(
    "arch, option, before, other",
    [
        ("gdr_transformer_tiny", "guided_reduction", "sum", "mean"),
        ("capsnmt_tiny", "decoder_norms", "after", "both"),
    ],
)
def test_a_training_of_an_older_version_continues_with_its_reading(data, tmp_path, capsys, arch, option, before, other):
    dashed = f"--{option.replace('_', '-')}"
    train(data, tmp_path, "--max-update", 2, dashed, before, arch=arch)
    last = tmp_path / "checkpoint_last.pt"
    state = torch.load(last, weights_only=False)
    assert state["cfg"]["model"].pop(option) == before
    torch.save(state, last)
    refused = train(data, tmp_path, "--max-update", 4, arch=arch, succeeds=False)
    assert last_line(refused).endswith(
        f"{last}: it was trained with {dashed} {before}, but the model has {dashed} {other}; "
        f"continue with {before}, or train anew in another --save-dir"
    )
    assert "@ 2 updates" in train(data, tmp_path, "--max-update", 4, dashed, before, arch=arch)
    assert torch.load(last, weights_only=False)["cfg"]["model"][option] == before
    capsys.readouterr()
    assert main(["size", str(last), "--data", str(data)]) == 0
    assert f"{last} ({dashed} {before})" in capsys.readouterr().out
