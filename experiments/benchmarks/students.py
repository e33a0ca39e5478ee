"""Measure the sentences a second of a routed teacher and its student: by fairseq, and in CTranslate2.

    python experiments/benchmarks/students.py TEACHER STUDENT DATA [--sentences 500] [--rounds 3] [--out DIR] [--json]

DATA is OUT of a prepare script. fairseq and CTranslate2 translate batches of 4,096 tokens with beam 5. The measurements
alternate. Models are loaded before; DIR gets the translations of CTranslate2 with all sentences of the test set, for
`fairseq-capsule score`.
"""

import argparse
import json
import tempfile
import warnings
from pathlib import Path
from statistics import median
from typing import Callable, List, Sequence

import ctranslate2
import torch
from ctranslate2.converters import FairseqConverter
from measure import alternate, environment

from fairseq_capsule.hub import CapsuleHub, load
from fairseq_capsule_lab.export.to_fairseq import write

BEAM, TOKENS = 5, 4096


def searches(hub: CapsuleHub, sentences: int) -> Callable[[], None]:
    """Return the work of `fairseq-generate` for the first sentences of the test set, without reading and writing."""
    hub.task.load_dataset("test")
    hub.cfg.generation.beam = BEAM
    generator = hub.task.build_generator(list(hub.models), hub.cfg.generation)
    dataset = hub.task.dataset("test")
    batches = hub.task.get_batch_iterator(dataset, max_tokens=TOKENS).next_epoch_itr(shuffle=False)
    samples = [keep_first(sample, sentences) for sample in batches]

    def search() -> None:
        for sample in samples:
            if len(sample["id"]):
                hub.task.inference_step(generator, list(hub.models), sample)

    return search


def keep_first(sample: dict, sentences: int) -> dict:
    """Return the sentences of a batch whose numbers are below a limit."""
    kept = sample["id"] < sentences
    inputs = {name: value[kept] for name, value in sample["net_input"].items() if isinstance(value, torch.Tensor)}
    return {"id": sample["id"][kept], "net_input": inputs}


def export(hub: CapsuleHub, folder: Path, quantization: str) -> ctranslate2.Translator:
    folder.mkdir()
    write(hub.models[0], hub.task, folder)
    converter = FairseqConverter(str(folder / "model.pt"), str(folder), unsafe_deserialization=True)
    converted = converter.convert(str(folder / "converted"), quantization=quantization)
    return ctranslate2.Translator(converted, intra_threads=torch.get_num_threads())


def translate(translator: ctranslate2.Translator, lines: Sequence[List[str]]) -> List[str]:
    results = translator.translate_batch(lines, beam_size=BEAM, max_batch_size=TOKENS, batch_type="tokens")
    return [" ".join(result.hypotheses[0]) for result in results]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("teacher", "student", "data"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "'pin_memory'")  # fairseq's data loader uses it even without a GPU

    teacher, student = (load(path, args.data) for path in (args.teacher, args.student))
    language = student.task.cfg.source_lang
    subwords = [line.split() for line in (args.data / f"bpe/test.{language}").read_text(encoding="utf-8").splitlines()]
    first = slice(args.sentences)
    with tempfile.TemporaryDirectory() as folder:
        exported = {
            name: export(student, Path(folder, name), quantization)
            for name, quantization in (("float32", None), ("int8", "int8"))
        }
        for name, translator in exported.items() if args.out else ():
            args.out.mkdir(parents=True, exist_ok=True)
            lines = [student.detokenize(student.remove_bpe(line)) for line in translate(translator, subwords)]
            (args.out / f"{name}.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        work = {
            "teacher, fairseq": searches(teacher, args.sentences),
            "student, fairseq": searches(student, args.sentences),
            **{
                f"student, CTranslate2 {name}": lambda translator=translator: translate(translator, subwords[first])
                for name, translator in exported.items()
            },
        }
        times = alternate(work, args.rounds, "cpu")
    rates = {name: min(args.sentences, len(subwords)) / median(seconds) for name, seconds in times.items()}
    for name, rate in rates.items():
        print(f"{name:28} {rate:8.1f} sentences a second")
    if args.json:
        print(json.dumps({"sentences_per_second": rates, "rounds": args.rounds, **environment("cpu")}))


if __name__ == "__main__":
    main()
