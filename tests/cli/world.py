"""Small inputs of every kind for the commands. They are made in seconds, without training."""

import json

import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import preprocess
from omegaconf import OmegaConf

import fairseq_capsule.tasks  # noqa: F401  registers the architecture

SENTENCES = ["a b c d e", "c d a", "b b d c a", "e d c b a", "a c e b"]
CODES = "#version: 0.2\na b</w>\nc d\n"
SMALL = " ".join(
    f"--{side}-embed-dim 8 --{side}-ffn-embed-dim 8 --{side}-layers 1 --{side}-attention-heads 2"
    for side in ("encoder", "decoder")
)
GDR = (
    f"{SMALL} --arch gdr_transformer_tiny --past-future-capsule-dim 4 --past-future-ffn-dim 4 --past-future-capsules 1 "
    "--guided-heads both --criterion bag_of_words_probe --probe-reads mean"
)
PLAIN = f"{SMALL} --arch capsule_transformer_tiny --encoder-routing none --decoder-routing none"


def preprocess_texts(folder):
    sets = [word for split in ("train", "valid", "test") for word in (f"--{split}pref", str(folder / "bpe" / split))]
    arguments = ["-s", "en", "-t", "de", *sets, "--destdir", str(folder / "bin")]
    preprocess.main(options.get_preprocessing_parser().parse_args(arguments))


def save_checkpoint(data, path, architecture=GDR, target="de"):
    """Write an untrained model of this package in the format of a training. `architecture` has its options."""
    words = [str(data), *architecture.split(), "--task", "capsule_translation", "-s", "en", "-t", target]
    words += "--optimizer adam --lr 0.1 --max-tokens 100".split()
    parsed = options.parse_args_and_arch(options.get_training_parser(), words)
    cfg = convert_namespace_to_omegaconf(parsed)
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    criterion = task.build_criterion(cfg.criterion)
    state = {
        "args": None,
        "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True),
        "model": model.state_dict(),
        "criterion": criterion.state_dict(),
        "optimizer_history": [{"num_updates": 1, "optimizer_name": "FairseqAdam", "lr_scheduler_state": {}}],
        "extra_state": {"epoch": 1, "train_iterator": {"epoch": 2}},
        "task_state": task.state_dict(),
    }
    torch.save(state, path)


def write_output(path, sentences):
    lines = []
    for number, (source, hypothesis) in enumerate(zip(SENTENCES, sentences)):
        lines += [f"S-{number}\t{source}", f"T-{number}\t{source}"]
        lines += [f"{kind}-{number}\t-0.5\t{hypothesis}" for kind in "HD"]
    path.write_text("".join(line + "\n" for line in lines))


def make_prepared(folder, binarised):
    """Make what a prepare script leaves, as far as an export reads it."""
    folder.mkdir()
    (folder / "bin").symlink_to(binarised)
    (folder / "codes").write_text(CODES)
    settings = {"script": "prepare.sh", "tokenise": "moses", "source": "en", "target": "de", "lower": "no"}
    (folder / "settings.json").write_text(json.dumps(settings))


def make_world(folder):
    """Make data, a checkpoint, texts and outputs for every command."""
    (folder / "data/bpe").mkdir(parents=True)
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            (folder / f"data/bpe/{split}.{language}").write_text("".join(line + "\n" for line in SENTENCES))
    preprocess_texts(folder / "data")
    (folder / "codes").write_text(CODES)
    (folder / "text.de").write_text("".join(line + "\n" for line in SENTENCES))
    write_output(folder / "first.out", SENTENCES)
    write_output(folder / "second.out", SENTENCES[::-1])
    save_checkpoint(folder / "data/bin", folder / "model.pt")
    save_checkpoint(folder / "data/bin", folder / "plain.pt", PLAIN)
    make_prepared(folder / "prepared", folder / "data/bin")
    (folder / "links").write_text("0-0 1-2\n" * len(SENTENCES))
    (folder / "runs/transformer").mkdir(parents=True)
    (folder / "runs/transformer/finished").touch()
