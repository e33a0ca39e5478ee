"""Train, or fine-tune from a plain model, with Hugging Face transformers alone: docs/transformers.md.

The data are text files, `FOLDER/train.en`, `valid.en`, `test.en` and those of the other language, or a folder that
`datasets` saved, with the splits train, valid and test and a column `translation`. The options are those of `Options`
and of `Arguments`. An interrupted training resumes when the command is run again.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import List, Optional

import torch
import transformers
from datasets import Dataset, load_from_disk
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, Seq2SeqTrainer, Seq2SeqTrainingArguments
from transformers.trainer_callback import TrainerState
from transformers.trainer_utils import get_last_checkpoint

from capsule_routing.huggingface import CapsuleConfig, CapsuleForConditionalGeneration
from capsule_routing.text.files import read_lines
from capsule_routing.text.languages import bleu


@dataclass
class Options:
    data: str = field(metadata={"help": "folder of the data"})
    source: str = field(metadata={"help": "language of the source, such as en"})
    target: str = field(metadata={"help": "language of the target"})
    preset: Optional[str] = field(default=None, metadata={"help": "such as gdr_transformer_tiny"})
    baseline: Optional[str] = field(default=None, metadata={"help": "folder of a model to start from"})
    options: str = field(default="{}", metadata={"help": "further options of CapsuleConfig, as JSON"})
    label_smoothing: float = 0.1
    vocab_size: int = field(default=8000, metadata={"help": "most subwords of a new tokenizer"})
    longest: int = field(default=256, metadata={"help": "most subwords of a sentence; the rest is cut off"})
    bleu_tokenizer: Optional[str] = field(default=None, metadata={"help": "of sacreBLEU, instead of the language's"})
    patience: int = field(default=5, metadata={"help": "evaluations without a better model before the training ends"})


@dataclass
class Arguments(Seq2SeqTrainingArguments):
    """Those of transformers. By default the best model by NLL is kept, and the learning rate falls as in fairseq."""

    predict_with_generate: bool = True
    eval_strategy: str = "epoch"
    save_strategy: str = "epoch"
    save_total_limit: int = 2
    load_best_model_at_end: bool = True
    metric_for_best_model: str = "nll"
    lr_scheduler_type: str = "inverse_sqrt"
    adam_beta2: float = 0.98

    def __post_init__(self):
        metric = self.metric_for_best_model.removeprefix("eval_")
        if metric == "loss":
            raise ValueError("--metric_for_best_model loss: it includes the losses of mechanisms; give nll or bleu")
        if self.greater_is_better is None:
            self.greater_is_better = metric != "nll"
        super().__post_init__()


class Trainer(Seq2SeqTrainer):
    """Logs the parts of the loss, and at an evaluation `eval_nll`, in bits for a token.

    `eval_loss` of transformers is the mean over batches of any size, with the losses of mechanisms, and leaves out
    batches whose loss is NaN.
    """

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

    def prediction_step(self, model, inputs, *args, **options):
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            nll = model(**inputs).losses["nll_loss"].double()
        tokens = (inputs["labels"] != -100).sum()
        self.nll_and_tokens += torch.stack([nll * tokens, tokens])
        return super().prediction_step(model, inputs, *args, **options)

    def evaluation_loop(self, *args, metric_key_prefix="eval", **options):
        self.nll_and_tokens = torch.zeros(2, dtype=torch.float64, device=self.args.device)
        output = super().evaluation_loop(*args, metric_key_prefix=metric_key_prefix, **options)
        nll, tokens = self.accelerator.reduce(self.nll_and_tokens).tolist()
        output.metrics[f"{metric_key_prefix}_nll"] = nll / tokens
        return output


def read(options: Options, split: str) -> Dataset:
    if Path(options.data, "dataset_dict.json").exists():
        return load_from_disk(options.data)[split]
    pair = options.source, options.target
    sides = [read_lines(Path(options.data, f"{split}.{name}")) for name in pair]
    return Dataset.from_dict({"translation": [dict(zip(pair, lines)) for lines in zip(*sides, strict=True)]})


def new_tokenizer(texts: List[str], size: int) -> PreTrainedTokenizerFast:
    """Learn subwords that both languages share, with the special tokens that the model expects."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    made = Tokenizer(models.BPE(unk_token="<unk>"))
    # Strip: a space at the end of a line would be a piece.
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, special_tokens=special))
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), special))
    inputs = ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=1024, model_input_names=inputs, **names)


def main() -> None:
    options, arguments = transformers.HfArgumentParser((Options, Arguments)).parse_args_into_dataclasses()
    metric = bleu(options.target, options.bleu_tokenizer, force=True)  # refuses a missing library before the training
    torch.manual_seed(arguments.seed)
    data = {split: read(options, split) for split in ("train", "valid", "test")}
    changes = {"label_smoothing": options.label_smoothing, **json.loads(options.options)}
    if options.baseline:
        tokenizer = AutoTokenizer.from_pretrained(options.baseline)
        model = CapsuleForConditionalGeneration.from_baseline(options.baseline, options.preset, **changes)
    else:
        texts = [text for pair in data["train"]["translation"] for text in pair.values()]
        tokenizer = new_tokenizer(texts, options.vocab_size)
        sizes = {"vocab_size": len(tokenizer), "share_all_embeddings": True}
        model = CapsuleForConditionalGeneration(CapsuleConfig.preset(options.preset, **{**sizes, **changes}))

    def tokenise(rows):
        sources, targets = ([pair[name] for pair in rows["translation"]] for name in (options.source, options.target))
        return tokenizer(sources, text_target=targets, truncation=True, max_length=options.longest)

    def texts_of(tokens):
        tokens[tokens < 0] = tokenizer.pad_token_id
        return tokenizer.batch_decode(tokens, skip_special_tokens=True)

    def score(predicted):
        found, references = texts_of(predicted.predictions), texts_of(predicted.label_ids)
        return {"bleu": metric.corpus_score(found, [references]).score}

    prepared = {name: rows.map(tokenise, batched=True, remove_columns=rows.column_names) for name, rows in data.items()}
    folder = Path(arguments.output_dir)
    last = get_last_checkpoint(folder) if folder.is_dir() else None
    stopping, state = transformers.EarlyStoppingCallback(options.patience), None
    if last:  # how long the model has not been better belongs to what is resumed
        state = TrainerState.load_from_json(Path(last, "trainer_state.json"))
        counted = state.stateful_callbacks["EarlyStoppingCallback"]["attributes"]
        stopping.early_stopping_patience_counter = counted["early_stopping_patience_counter"]
    ended = stopping.early_stopping_patience_counter >= options.patience
    if ended:
        model = CapsuleForConditionalGeneration.from_pretrained(folder / Path(state.best_model_checkpoint or last).name)
    further = {"compute_metrics": score, "callbacks": [stopping]}
    collator = transformers.DataCollatorForSeq2Seq(tokenizer, model=model)
    trainer = Trainer(model, arguments, collator, prepared["train"], prepared["valid"], tokenizer, **further)
    if ended:
        print(f"{folder}: ended by --patience {options.patience} after update {state.global_step}")
    else:
        trainer.train(resume_from_checkpoint=last)
    trainer.save_model()  # the best one
    found = texts_of(trainer.predict(prepared["test"]).predictions)
    references = [pair[options.target] for pair in data["test"]["translation"]]
    Path(folder, "test.txt").write_text("\n".join(found) + "\n", encoding="utf-8")
    score_of_test = metric.corpus_score(found, [references])
    print(metric.get_signature(), score_of_test, sep="\n")


if __name__ == "__main__":
    main()
