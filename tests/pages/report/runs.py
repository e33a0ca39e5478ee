"""Run folders in the format of train.sh and evaluate.sh, generated from sentences in milliseconds."""

import json
import random

WORDS = "der die das haus hund mann frau kind sieht läuft schläft auf unter neben rot groß klein und".split()


def make_data(folder, sentences=40, seed=1, split="test"):
    """Make a prepared data folder, and return its references."""
    rng = random.Random(seed)
    references = [" ".join(rng.choices(WORDS, k=rng.randint(3, 60))).capitalize() + "." for _ in range(sentences)]
    (folder / "raw").mkdir(parents=True, exist_ok=True)
    (folder / "bin").mkdir(exist_ok=True)
    (folder / f"bin/{split}.en-de.en.bin").touch()
    write(folder / f"raw/{split}.de", references)
    write(folder / f"raw/{split}.en", [line.upper() for line in references])
    return references


def make_run(folder, data, references, error, split="test", seed=1, scores=None, log=True):
    """Make an evaluated run with a wrong word in every `1 / error` words."""
    rng = random.Random(seed)
    evaluation = folder / "evaluation" / split
    evaluation.mkdir(parents=True)
    lines = []
    for number, reference in enumerate(references):
        tokens = reference.replace(".", " .").split()
        output = [rng.choice(WORDS) if rng.random() < error else token for token in tokens]
        texts = {"S": reference.upper().replace(".", " ."), "T": " ".join(tokens)}
        lines += [f"{kind}-{number}\t{text}" for kind, text in texts.items()]
        lines += [f"{kind}-{number}\t-0.5\t{' '.join(output)}" for kind in "HD"]
    write(evaluation / "generate.out", lines)
    search = {"script": "evaluate.sh", "checkpoint": "0123", "beam": "5", "lenpen": "1.0", "nbest": "1", "data": "4567"}
    (evaluation / "settings.json").write_text(json.dumps(search))
    report = {
        "hypothesis": "generate.out",
        "references": [str(data / f"raw/{split}.de")],
        "sentences": len(references),
        "scores": {"tokenised_bleu": {"signature": "nrefs:1|case:mixed"}},
    }
    (evaluation / "scores.json").write_text(json.dumps({**report, **(scores or {})}))
    settings = {"data": "89ab", "config": {"model": {"_name": "transformer"}, "task": {"source_lang": "en"}}}
    (folder / "settings.json").write_text(json.dumps(settings))
    start = {"start": "2026-11-22T18:00:00+00:00", "seed": 1, "gpus": [], "processor": "2 × CPU", "batch": "1024"}
    (folder / "manifest.json").write_text(json.dumps({"starts": [start]}))
    if log:
        write(folder / "train.log", training_log(error))
    return folder


def training_log(error, validations=8):
    start = "[2026-11-22 18:00:00,000]"
    lines = []
    for epoch in range(1, validations + 1):
        loss = 2 + 10 * error + 5 / epoch
        lines += [
            f"{start}[valid][INFO] - epoch {epoch:03d} | valid on 'valid' subset | loss {loss:.3f} | nll_loss "
            f"{loss - 1:.3f} | ppl {2**loss:.2f} | wps 0 | bsz 20 | num_updates {50 * epoch} | best_loss {loss:.3f}",
            f"{start}[train][INFO] - epoch {epoch:03d} | loss {loss:.3f} | ppl 9 | wps {2000 + epoch} | ups 2.87 "
            f"| num_updates {50 * epoch} | lr 6.00985e-05 | gnorm 2.562 | train_wall 2 | wall 6",
            f"{start}[fairseq.checkpoint_utils][INFO] - Saved checkpoint x (epoch 1 @ {50 * epoch} updates, score 1)",
        ]
    return lines


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
