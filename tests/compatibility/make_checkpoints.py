"""Make the checkpoints of this folder. Commit fbd7477 made them, and they must not change.

    python tests/compatibility/make_checkpoints.py OUT

trains each architecture for a few updates on an invented language of eight words and writes OUT/text, OUT/<name>.pt and
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
GRET = "--global-capsules 4"
GUIDED = "--task capsule_translation --criterion label_smoothed_cross_entropy_with_routing_losses"
PLAIN = "--criterion label_smoothed_cross_entropy"
CASES = {
    "capsule_transformer": f"{TRANSFORMER} {PLAIN}",
    "capsule_transformer_vertical": f"--arch capsule_transformer_base {TRANSFORMER} {PLAIN} --encoder-routing vertical "
    "--decoder-routing none",
    "capsule_transformer_big": f"{TRANSFORMER} {PLAIN} --encoder-routing-layers 2",
    "capsule_transformer_tiny": f"{TRANSFORMER} {PLAIN} --routing-iterations 2",
    "everything": f"--arch capsule_transformer_tiny {TRANSFORMER} {GRET} {GUIDED} --past-future gdr "
    "--guided-heads both --global-representation capsule --share-all-embeddings",
    "gdr_transformer_base": f"{TRANSFORMER} {GUIDED}",
    "gdr_transformer_big": f"{TRANSFORMER} {GUIDED} --past-future clf",
    "gdr_transformer_tiny": f"{TRANSFORMER} {GUIDED} --past-future attn",
    "gret_transformer_base": f"{TRANSFORMER} {GRET} {PLAIN}",
    "gret_transformer_big": f"{TRANSFORMER} {GRET} {PLAIN} --global-pooling concat --global-gate none",
    "gret_transformer_tiny": f"{TRANSFORMER} {GRET} {PLAIN} --global-aggregation none",
    "capsule_lstm": f"{LSTM} {PLAIN}",
    "gdr_lstm": f"{LSTM} {GUIDED}",
    "capsnmt": f"{CAPSNMT} {PLAIN}",
    "capsnmt_base": f"{CAPSNMT} {PLAIN} --aggregation-weights shared --aggregation-scoring votes",
    "capsnmt_big": f"{CAPSNMT} {PLAIN} --decoder-context concat",
    "capsnmt_tiny": f"{CAPSNMT} {PLAIN} --leaky-softmax --aggregation-positions result",
    "simple_aggregation_base": f"{CAPSNMT} {PLAIN}",
    "simple_aggregation_tiny": f"{CAPSNMT} {PLAIN} --decoder-context concat",
    "transformer": f"{TRANSFORMER} {PLAIN}",
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
        arch = [] if "--arch" in options else ["--arch", name]
        folder = out / "runs" / name
        subprocess.run(
            [sys.executable, "-m", "fairseq_cli.train", data, "--user-dir", "fairseq_capsule", *arch, *options.split(),
             *TRAINING.split(), "--save-dir", folder],
            check=True,
        )  # fmt: skip
        (folder / "checkpoint_best.pt").rename(out / f"{name}.pt")
        expected[name] = translations(out / f"{name}.pt", data)
    (out / "translations.json").write_text(json.dumps(expected, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
