"""Train, or fine-tune from a plain model, with Hugging Face transformers alone: docs/transformers.md.

The data are text files, `FOLDER/train.en`, `valid.en`, `test.en` and those of the other language, or a folder that
`datasets` saved, with the splits train, valid and test and a column `translation`. The options are those of `Options`
and of `Arguments`. An interrupted training resumes when the command is run again.

It writes to `--output_dir`: the best model and its tokenizer, which `fairseq-capsule import-model` reads too, test.txt
with the translations of the test sentences, checkpoint-N for each kept evaluation, and runs/ for TensorBoard.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import List, Optional

import sacrebleu
import torch
import transformers
from datasets import Dataset, load_from_disk
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from transformers import AutoConfig, AutoTokenizer, Seq2SeqTrainer, Seq2SeqTrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from capsule_routing.huggingface import CapsuleConfig, CapsuleForConditionalGeneration, CapsuleTokenizer


@dataclass
class Options:
    data: str = field(metadata={"help": "folder with train.LANG, valid.LANG and test.LANG, or that datasets saved"})
    source: str = field(metadata={"help": "language of the source, such as en"})
    target: str = field(metadata={"help": "language of the target"})
    preset: Optional[str] = field(default=None, metadata={"help": "such as gdr_transformer_tiny"})
    baseline: Optional[str] = field(
        default=None, metadata={"help": "folder of a model to start from, also of a pretrained one"}
    )
    options: str = field(default="{}", metadata={"help": "further options of CapsuleConfig, as JSON"})
    label_smoothing: float = 0.1
    vocab_size: int = field(default=8000, metadata={"help": "most subwords of a new tokenizer"})
    longest: int = field(default=256, metadata={"help": "most subwords of a sentence; the rest is cut off"})
    patience: int = field(default=5, metadata={"help": "evaluations without a better BLEU before the training ends"})


@dataclass
class Arguments(Seq2SeqTrainingArguments):
    """Those of transformers. By default the best model by BLEU is kept, and the learning rate falls as in fairseq.

    Evaluations during the training search with one beam, as most of their time would be the search; the test with five.
    """

    predict_with_generate: bool = True
    eval_strategy: str = "epoch"
    save_strategy: str = "epoch"
    save_total_limit: int = 2
    load_best_model_at_end: bool = True
    metric_for_best_model: str = "bleu"
    lr_scheduler_type: str = "inverse_sqrt"
    adam_beta2: float = 0.98
    generation_num_beams: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.label_smoothing_factor:
            raise SystemExit("--label_smoothing_factor leaves out losses of the model; use --label_smoothing")
        if not self.predict_with_generate:
            raise SystemExit("--predict_with_generate False leaves nothing to compute BLEU from")


class Trainer(Seq2SeqTrainer):
    """Logs the parts of the loss too."""

    def compute_loss(self, model, inputs, return_outputs=False, **options):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **options)
        if model.training:
            self.parts = [*getattr(self, "parts", []), outputs.losses]
        return (loss, outputs) if return_outputs else loss

    def log(self, logs, *args, **options):
        parts, self.parts = getattr(self, "parts", []), []
        if "loss" in logs and parts:
            logs |= {name: torch.stack([part[name] for part in parts]).mean().item() for name in parts[0]}
        super().log(logs, *args, **options)


def read(options: Options, split: str) -> Dataset:
    if Path(options.data, "dataset_dict.json").exists():
        return load_from_disk(options.data)[split]
    pair = options.source, options.target
    sides = [Path(options.data, f"{split}.{name}").read_text(encoding="utf-8").splitlines() for name in pair]
    return Dataset.from_dict({"translation": [dict(zip(pair, lines)) for lines in zip(*sides, strict=True)]})


def new_tokenizer(options: Options, texts: List[str], folder: Path) -> CapsuleTokenizer:
    """Learn subwords that both languages share, unless an interrupted training did."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces, vocabulary = folder / "sentencepiece.model", folder / "vocabulary.json"
    if not vocabulary.is_file():
        special = {"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3}
        kind = {"vocab_size": options.vocab_size, "hard_vocab_limit": False, "character_coverage": 1.0}
        with open(pieces, "wb") as file:
            SentencePieceTrainer.train(
                sentence_iterator=iter(texts), model_writer=file, minloglevel=1, **special, **kind
            )
        learned = SentencePieceProcessor(model_file=str(pieces))
        words = [learned.id_to_piece(number) for number in range(len(learned))]
        vocabulary.write_text(json.dumps({"source": words, "target": words}, ensure_ascii=False), encoding="utf-8")
    sides = {
        side: {"language": language, "tokenizer": "none", "subwords": "sentencepiece"}
        for side, language in (("source", options.source), ("target", options.target))
    }
    return CapsuleTokenizer(str(vocabulary), pieces=str(pieces), model_max_length=1024, **sides)


def main() -> None:
    options, arguments = transformers.HfArgumentParser((Options, Arguments)).parse_args_into_dataclasses()
    torch.manual_seed(arguments.seed)
    data = {split: read(options, split) for split in ("train", "valid", "test")}
    changes = {"label_smoothing": options.label_smoothing, **json.loads(options.options)}
    if options.baseline:
        tokenizer = AutoTokenizer.from_pretrained(options.baseline)
        is_ours = AutoConfig.from_pretrained(options.baseline).model_type == CapsuleConfig.model_type
        kind = CapsuleForConditionalGeneration
        start = kind.from_baseline if is_ours else kind.from_pretrained_translation
        model = start(options.baseline, options.preset, **changes)
    else:
        texts = [text for pair in data["train"]["translation"] for text in pair.values()]
        with arguments.main_process_first():
            tokenizer = new_tokenizer(options, texts, Path(arguments.output_dir, "tokenizer"))
        sizes = {"vocab_size": len(tokenizer), "share_all_embeddings": True}
        model = CapsuleForConditionalGeneration(CapsuleConfig.preset(options.preset, **{**sizes, **changes}))

    def tokenise(rows):
        sources, targets = ([pair[name] for pair in rows["translation"]] for name in (options.source, options.target))
        return tokenizer(sources, text_target=targets, truncation=True, max_length=options.longest)

    def texts_of(tokens):
        tokens[tokens < 0] = tokenizer.pad_token_id
        return tokenizer.batch_decode(tokens, skip_special_tokens=True)

    def bleu(predicted):
        found, references = texts_of(predicted.predictions), texts_of(predicted.label_ids)
        return {"bleu": sacrebleu.corpus_bleu(found, [references], force=True).score}

    with arguments.main_process_first():
        prepared = {
            name: rows.map(tokenise, batched=True, remove_columns=rows.column_names) for name, rows in data.items()
        }
    further = {"compute_metrics": bleu, "callbacks": [transformers.EarlyStoppingCallback(options.patience)]}
    collator = transformers.DataCollatorForSeq2Seq(tokenizer, model=model)
    trainer = Trainer(model, arguments, collator, prepared["train"], prepared["valid"], tokenizer, **further)
    folder = Path(arguments.output_dir)
    trainer.train(resume_from_checkpoint=get_last_checkpoint(folder) if folder.is_dir() else None)
    trainer.save_model()  # the best one
    found = texts_of(trainer.predict(prepared["test"], num_beams=5).predictions)
    references = [pair[options.target] for pair in data["test"]["translation"]]
    if trainer.is_world_process_zero():
        Path(folder, "test.txt").write_text("\n".join(found) + "\n", encoding="utf-8")
        print(sacrebleu.corpus_bleu(found, [references], force=True))


if __name__ == "__main__":
    main()
