"""Parts (a) and (e): numbers of small models, and translations of old checkpoints, through fairseq's registries alone.

    python -m tests.evidence.models PART PLUGIN FOLDER FILE

writes the part to FILE with torch.save: nested dictionaries with tensors. PLUGIN is the --user-dir. FOLDER is a new
folder for dictionaries or checkpoints.
"""

import sys
import tarfile
from argparse import Namespace
from pathlib import Path

import torch
from fairseq import options, tasks, utils
from fairseq.data.language_pair_dataset import collate
from fairseq.dataclass.configs import GenerationConfig
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY

from tests.compatibility.test_old_checkpoints import translations
from tests.evidence.lists import read

HERE = Path(__file__).parent
WORDS = 40
LENGTHS = [(7, 5), (1, 9), (12, 2), (5, 8)]  # words in the sources and targets of the batch
PAD, END, FIRST = 1, 2, 4  # indices of a dictionary


def read_options():
    """Return the options of the sizes, and (arch, further words) of every case."""
    sections = read("options.txt")
    sizes = sections.pop("sizes")
    return sizes, [(line, heading.split()) for heading, lines in sections.items() for line in lines]


def build(data, sizes, line, further):
    """Return the task, the model with the initial parameters of seed 1, and the criterion."""
    arch, *words = line.split()
    known = MODEL_DATACLASS_REGISTRY[arch].__dataclass_fields__
    small = [word for size in sizes if size.split()[0][2:].replace("-", "_") in known for word in size.split()]
    given = [str(data), "-s", "en", "-t", "de", "--arch", arch, *small, *further, *words, "--optimizer", "adam"]
    given += ["--max-tokens", "100", "--cpu"]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), given))
    task = tasks.setup_task(cfg.task)
    torch.manual_seed(1)
    model = task.build_model(cfg.model)
    return task, model, task.build_criterion(cfg.criterion)


def make_batch():
    """Return a batch of random words, with padding on both sides."""
    generator = torch.Generator().manual_seed(3)

    def draw(number):
        return torch.cat([torch.randint(FIRST, FIRST + WORDS, (number,), generator=generator), torch.tensor([END])])

    samples = [{"id": n, "source": draw(source), "target": draw(target)} for n, (source, target) in enumerate(LENGTHS)]
    return collate(samples, pad_idx=PAD, eos_idx=END, left_pad_source=True, left_pad_target=False)


def numbers_of(value):
    return value.tolist() if torch.is_tensor(value) else value


def losses(model, criterion, batch):
    """Return the loss, with its gradients, and every logged value."""
    torch.manual_seed(2)
    loss, size, log = criterion(model, batch)
    with metrics.aggregate(new_root=True) as meters:
        type(criterion).reduce_metrics([log])
    printed = {name: numbers_of(value) for name, value in meters.get_smoothed_values().items()}
    logged = {name: numbers_of(value) for name, value in log.items()}
    return loss, {"loss": loss.item(), "sample_size": size, "logged": logged, "printed": printed}


def numbers_of_model(task, model, criterion, batch):
    parts = {"model": model, "criterion": criterion}
    states = ((part, *item) for part, module in parts.items() for item in module.state_dict().items())
    initial = {f"{part}.{name}": value.clone() for part, name, value in states}
    numbers = {"order": [name for name, _ in model.named_parameters()], "initial": initial}
    torch.manual_seed(2)
    with torch.no_grad():  # so that no parameter is zero, as some are initially
        for parameter in [*model.parameters(), *criterion.parameters()]:
            parameter.add_(0.1 * torch.randn_like(parameter))
            if parameter.dim() == 2 and len(parameter) == len(task.target_dictionary):
                parameter[PAD] = 0
    for mode in ("train", "eval"):
        model.double().train(mode == "train")
        criterion.double().train(mode == "train")
        model.zero_grad()
        criterion.zero_grad()
        torch.manual_seed(2)
        logits = model(**batch["net_input"])[0]
        loss, logged = losses(model, criterion, batch)
        numbers[mode] = {"logits": logits.detach(), **logged}
        if mode == "train":
            loss.backward()
            named = [*model.named_parameters(), *criterion.named_parameters("criterion")]
            numbers["gradients"] = {
                name: "none" if parameter.grad is None else parameter.grad.clone() for name, parameter in named
            }
    generator = task.build_generator([model], GenerationConfig(beam=5, max_len_b=20))
    numbers["beam 5"] = [
        [{"tokens": one["tokens"].tolist(), "score": one["score"].item()} for one in sentence]
        for sentence in task.inference_step(generator, [model], batch)
    ]
    return numbers


def small_models(folder, others):
    """Return part (a). `others` are the architectures of fairseq."""
    data = folder / "dictionaries"
    data.mkdir(parents=True)
    for language in ("en", "de"):
        (data / f"dict.{language}.txt").write_text("".join(f"w{n} 1\n" for n in range(WORDS)))
    batch, (sizes, cases) = make_batch(), read_options()
    unknown = ARCH_MODEL_REGISTRY.keys() - others - {line.split()[0] for line, _ in cases}
    entries = dict.fromkeys(sorted(unknown), "registered, but options.txt has no line for it")
    for line, further in cases:
        entries[line] = numbers_of_model(*build(data, sizes, line, further), batch)
    return entries


def old_checkpoints(folder):
    """Return part (e)."""
    source = HERE.parent / "compatibility"
    with tarfile.open(source / "checkpoints.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return {path.stem: translations(path, source / "data") for path in sorted(folder.glob("*.pt"))}


def main(part, plugin, folder, file):
    torch.set_num_threads(1)
    others = set(ARCH_MODEL_REGISTRY)
    utils.import_user_module(Namespace(user_dir=plugin))
    entries = small_models(Path(folder), others) if part == "a" else old_checkpoints(Path(folder))
    torch.save(entries, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
