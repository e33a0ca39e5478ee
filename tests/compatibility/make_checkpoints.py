"""Make the checkpoints of this folder. Commit fbd7477 made them, and they must not change.

    python tests/compatibility/make_checkpoints.py OUT

trains each system for a few updates on an invented language of eight words and writes OUT/text, OUT/<name>.pt and
OUT/translations.json, the tokens and scores of its beam search for the test sentences.
"""

import json
import random
import subprocess
import sys
from pathlib import Path

WORDS = "abcdefgh"
TRANSFORMER = (
    "--encoder-embed-dim 16 --encoder-ffn-embed-dim 16 --encoder-attention-heads 2 --encoder-layers 2 "
    "--decoder-embed-dim 16 --decoder-ffn-embed-dim 16 --decoder-attention-heads 2 --decoder-layers 2"
)
CAPSNMT = "--encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-layers 2 --decoder-layers 2"
LSTM = (
    "--encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-hidden-size 8 --decoder-hidden-size 16 "
    "--decoder-out-embed-dim 16"
)
GUIDED = (
    "--task capsule_translation --criterion label_smoothed_cross_entropy_with_routing_losses "
    "--bow-weight 1 --bca-weight 1"
)
PLAIN = "--criterion label_smoothed_cross_entropy"
CASES = {
    "capsule_transformer": f"--arch capsule_transformer_tiny {TRANSFORMER} {PLAIN}",
    "gdr_transformer": f"--arch gdr_transformer_tiny {TRANSFORMER} {GUIDED}",
    "gret_transformer": f"--arch gret_transformer_tiny {TRANSFORMER} {PLAIN} --global-capsules 4",
    "selective_transformer": f"--arch selective_transformer_tiny {TRANSFORMER} {PLAIN}",
    "gdr_lstm": f"--arch gdr_lstm {LSTM} {GUIDED}",
    "capsnmt": f"--arch capsnmt_tiny {CAPSNMT} {PLAIN}",
    "everything": f"--arch capsule_transformer_tiny {TRANSFORMER} {GUIDED} --past-future gdr --guided-heads both "
    "--global-representation capsule --global-capsules 4 --share-all-embeddings",
}
TRAINING = (
    "--optimizer adam --lr 2e-3 --max-tokens 200 --label-smoothing 0.1 --cpu --seed 1 --max-epoch 3 --num-workers 0 "
    "--no-epoch-checkpoints --no-save-optimizer-state --no-last-checkpoints --log-format none"
)


def write_data(folder: Path) -> None:
    folder.mkdir(parents=True)
    rng = random.Random(1)
    for split, number in (("train", 100), ("valid", 8), ("test", 6)):
        with open(folder / f"{split}.en", "w") as source, open(folder / f"{split}.de", "w") as target:
            for _ in range(number):
                words = [rng.choice(WORDS) for _ in range(rng.randint(2, 7))]
                print(*words, file=source)
                print(*reversed(words), file=target)
    prefixes = [word for split in ("train", "valid", "test") for word in (f"--{split}pref", folder / split)]
    subprocess.run(
        [sys.executable, "-m", "fairseq_cli.preprocess", *prefixes, *"-s en -t de --joined-dictionary".split(),
         "--destdir", folder / "bin"],
        check=True,
    )  # fmt: skip


def translations(path: Path, data: Path) -> list:
    """Return two hypotheses of every test sentence with their scores (beam 4), and the score of each reference word."""
    import torch
    from fairseq import checkpoint_utils
    from omegaconf import OmegaConf

    import fairseq_capsule.tasks  # noqa: F401

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


def main(out: Path) -> None:
    write_data(out / "text")
    data = out / "text" / "bin"
    expected = {}
    for name, options in CASES.items():
        folder = out / "runs" / name
        subprocess.run(
            [sys.executable, "-m", "fairseq_cli.train", data, "--user-dir", "fairseq_capsule", *options.split(),
             *TRAINING.split(), "--save-dir", folder],
            check=True,
        )  # fmt: skip
        (folder / "checkpoint_best.pt").rename(out / f"{name}.pt")
        expected[name] = translations(out / f"{name}.pt", data)
    (out / "translations.json").write_text(json.dumps(expected, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
