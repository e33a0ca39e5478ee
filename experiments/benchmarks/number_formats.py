"""Compare the translations of an exported model in float32 with those in bfloat16 and int8, and in CTranslate2.

    fairseq-capsule export RUN/checkpoint_last.pt DATA EXPORTED --to transformers
    python experiments/benchmarks/number_formats.py EXPORTED DATA [--ctranslate2 DIR...] [--rounds 4] [--out FILE]

DATA is OUT of a prepare script. The sentences of its test set are translated as by `generate()`, in batches of 50 of
similar length. For each format: how many translations are equal to those in float32, sacreBLEU without case, the
largest difference between the scores of equal translations, and the speed relative to float32: CPU time on one thread
for the first sentences, in rounds in which the formats take turns. DIR is a folder of CTranslate2's converter, of a
plain model; it translates the same subwords.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import torch
from rows import write_rows
from torch.ao.quantization import per_channel_dynamic_qconfig, quantize_dynamic
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import capsule_routing.huggingface  # noqa: F401  registers the model and its tokenizer
from capsule_routing.text.languages import bleu

COLUMNS = ["model", "format", "sentences", "equal", "bleu", "score_difference", "speed"]
BATCH = 50


class Translation(NamedTuple):
    """A translation as raw text, and its score."""

    text: str
    score: float


Translate = Callable[[List[str]], List[Translation]]


def in_transformers(model: Any, tokenizer: Any) -> Translate:
    def translate(texts: List[str]) -> List[Translation]:
        batch = tokenizer(texts, return_tensors="pt", padding=True)
        with torch.no_grad():
            found = model.generate(**batch, return_dict_in_generate=True, output_scores=True)
        written = tokenizer.batch_decode(found.sequences, skip_special_tokens=True)
        return [Translation(*pair) for pair in zip(written, found.sequences_scores.tolist())]

    return translate


def in_ctranslate2(folder: Path, tokenizer: Any) -> Translate:
    import ctranslate2

    translator = ctranslate2.Translator(str(folder), intra_threads=1)

    def translate(texts: List[str]) -> List[Translation]:
        ids = [tokenizer(text).input_ids[:-1] for text in texts]  # the converted model adds </s> itself
        words = [tokenizer.convert_ids_to_tokens(row, use_source_tokenizer=True) for row in ids]
        found = translator.translate_batch(words, beam_size=5, max_decoding_length=200, return_scores=True)
        numbers = (tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in found)
        return [Translation(tokenizer.decode(row), result.scores[0]) for row, result in zip(numbers, found)]

    return translate


def formats(folder: Path, converted: Sequence[Path]) -> Dict[str, Translate]:
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def load(dtype: torch.dtype = torch.float32) -> Any:
        return AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=dtype).eval()

    linear = torch.nn.Linear
    models = {
        "float32": load(),
        "bfloat16": load(torch.bfloat16),
        "int8": quantize_dynamic(load(), {linear}),
        "int8, a scale for each channel": quantize_dynamic(load(), {linear: per_channel_dynamic_qconfig}),
    }
    found = {name: in_transformers(model, tokenizer) for name, model in models.items()}
    found.update({f"CTranslate2, {path.name}": in_ctranslate2(path, tokenizer) for path in converted})
    return found


def translate_all(translate: Translate, texts: Sequence[str]) -> List[Translation]:
    """Translate texts in batches of similar length, and return the translations in the order of the texts."""
    order = sorted(range(len(texts)), key=lambda number: len(texts[number].split()))
    found: Dict[int, Translation] = {}
    for start in range(0, len(order), BATCH):
        numbers = order[start : start + BATCH]
        found.update(zip(numbers, translate([texts[number] for number in numbers])))
    return [found[number] for number in range(len(texts))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a folder of export --to transformers")
    parser.add_argument("data", type=Path, help="OUT of a prepare script")
    parser.add_argument("--ctranslate2", type=Path, nargs="+", default=[], metavar="DIR")
    parser.add_argument("--split", default="test")
    parser.add_argument("--timed", type=int, default=200, metavar="N", help="sentences in a timed round")
    parser.add_argument("--rounds", type=int, default=4, help="0: no speed")
    parser.add_argument("--out", type=Path, metavar="FILE", help="a CSV file to append to")
    args = parser.parse_args()
    torch.set_num_threads(1)
    ways = formats(args.model, args.ctranslate2)
    first, second = AutoTokenizer.from_pretrained(args.model).preparations
    texts, references = (
        (args.data / f"raw/{args.split}.{side.language}").read_text(encoding="utf-8").split("\n")[:-1]
        for side in (first, second)
    )
    translated = {name: translate_all(translate, texts) for name, translate in ways.items()}
    times: Dict[str, List[float]] = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, translate in ways.items():
            start = time.process_time()
            translate_all(translate, texts[: args.timed])
            times[name].append(time.process_time() - start)
    rows = []
    for name, found in translated.items():
        pairs = list(zip(found, translated["float32"]))
        differences = [abs(one.score - other.score) for one, other in pairs if one.text == other.text]
        scored = bleu(second.language, lowercase=True).corpus_score([one.text for one in found], [references])
        ratios = [whole / own for whole, own in zip(times["float32"], times[name])]
        speed = {"speed": statistics.median(ratios)} if ratios else {}
        row = {"model": args.model.name, "format": name, "sentences": len(texts), "equal": len(differences)}
        rows.append({**row, "bleu": scored.score, "score_difference": max(differences, default=0.0), **speed})
        print("  ".join(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    if args.out:
        write_rows(args.out, rows, COLUMNS)


if __name__ == "__main__":
    main()
