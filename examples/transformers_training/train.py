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
from typing import Any, Dict, List, Optional

import torch
import transformers
from datasets import Dataset, load_from_disk
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from transformers import AutoConfig, AutoTokenizer, Seq2SeqTrainer, Seq2SeqTrainingArguments
from transformers.trainer_callback import TrainerState
from transformers.trainer_utils import get_last_checkpoint

from capsule_routing.huggingface import CapsuleConfig, CapsuleForConditionalGeneration, CapsuleTokenizer
from capsule_routing.text.files import read_lines
from capsule_routing.text.languages import bleu
from capsule_routing.text.preparation import TextPreparation, compose


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
    bleu_tokenizer: Optional[str] = field(default=None, metadata={"help": "of sacreBLEU, instead of the language's"})
    patience: int = field(default=5, metadata={"help": "evaluations without a better model before the training ends"})


@dataclass
class Arguments(Seq2SeqTrainingArguments):
    """Those of transformers. By default the best model by NLL is kept, and the learning rate falls as in fairseq.

    Evaluations during the training search with one beam, as most of their time would be the search; the test with five.
    """

    predict_with_generate: bool = True
    eval_strategy: str = "epoch"
    save_strategy: str = "epoch"
    save_total_limit: int = 2
    load_best_model_at_end: bool = True
    metric_for_best_model: str = "nll"
    lr_scheduler_type: str = "inverse_sqrt"
    adam_beta2: float = 0.98
    generation_num_beams: int = 1

    def __post_init__(self) -> None:
        metric = self.metric_for_best_model.removeprefix("eval_")
        if metric == "loss":
            raise SystemExit("--metric_for_best_model loss includes the losses of mechanisms; give nll or bleu")
        if self.greater_is_better is None:
            self.greater_is_better = metric != "nll"
        if self.eval_strategy == "no":
            raise SystemExit("--eval_strategy no leaves nothing to choose the best model by")
        super().__post_init__()
        if self.label_smoothing_factor:
            raise SystemExit("--label_smoothing_factor leaves out losses of the model; use --label_smoothing")
        if self.prediction_loss_only or not self.predict_with_generate:
            raise SystemExit("BLEU needs --predict_with_generate True and --prediction_loss_only False")
        if self.batch_eval_metrics:
            raise SystemExit("--batch_eval_metrics computes BLEU of a batch; it needs all sentences")


class Trainer(Seq2SeqTrainer):
    """Logs the parts of the loss, and at an evaluation `eval_nll`, in bits for a token.

    `eval_loss` of transformers is the mean over batches of any size, with the losses of mechanisms, and leaves out
    batches whose loss is NaN.
    """

    def compute_loss(self, model, inputs, return_outputs=False, **options):
        # On a CPU the loss is computed without logits, in less time and memory. On a GPU nobody has measured it.
        inputs = {**inputs, "output_logits": self.args.device.type != "cpu"}
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
        number = len(inputs["labels"])
        rows = torch.arange(number, device=self.args.device) + number * self.accelerator.process_index
        kept = int(torch.isin(rows, self.accelerator.gather_for_metrics(rows)).sum())
        if kept:
            own = {name: value[:kept] for name, value in inputs.items()}
            with torch.no_grad(), self.compute_loss_context_manager():
                output = self.model(**own, output_logits=False)  # not its copies on several GPUs
            nll = output.losses["nll_loss"].double()
            tokens = (own["labels"] != -100).sum()
            self.nll_and_tokens += torch.stack([nll * tokens, tokens])
        return super().prediction_step(model, inputs, *args, **options)

    def evaluation_loop(self, *args, metric_key_prefix="eval", **options):
        # Several processes fill their last batches with sentences of the first ones. Seq2SeqTrainer would keep these.
        self.gather_function = self.accelerator.gather_for_metrics
        self.nll_and_tokens = torch.zeros(2, dtype=torch.float64, device=self.args.device)
        output = super().evaluation_loop(*args, metric_key_prefix=metric_key_prefix, **options)
        nll, tokens = self.accelerator.reduce(self.nll_and_tokens).tolist()
        output.metrics[f"{metric_key_prefix}_nll"] = nll / tokens
        return output


def composed(row: Dict[str, Any]) -> Dict[str, Any]:
    """Compose the characters of a pair (NFC), as the tokenizer does: a translation has those of its reference."""
    return {"translation": {name: compose(text) for name, text in row["translation"].items()}}


def read(options: Options, split: str) -> Dataset:
    if Path(options.data, "dataset_dict.json").exists():
        return load_from_disk(options.data)[split].map(composed)
    pair = options.source, options.target
    sides = []
    for file in (Path(options.data, f"{split}.{name}") for name in pair):
        lines = read_lines(file)
        sides.append(list(map(compose, lines)))
        if sides[-1] != lines:
            print(f"{file}: its characters were composed (NFC)")
    return Dataset.from_dict({"translation": [dict(zip(pair, lines)) for lines in zip(*sides, strict=True)]})


def new_tokenizer(options: Options, texts: List[str], folder: Path) -> CapsuleTokenizer:
    """Learn subwords that both languages share, unless an interrupted training did."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces, vocabulary = folder / "sentencepiece.model", folder / "vocabulary.json"
    if not vocabulary.is_file():
        special = {"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3}
        kind = {"vocab_size": options.vocab_size, "hard_vocab_limit": False, "character_coverage": 1.0}
        kind["normalization_rule_name"] = "identity"  # otherwise translations would differ from the references
        with open(pieces, "wb") as file:
            lines = map(TextPreparation(options.source, "none").words, texts)  # as the tokenizer reads them
            SentencePieceTrainer.train(sentence_iterator=lines, model_writer=file, minloglevel=1, **special, **kind)
        learned = SentencePieceProcessor(model_file=str(pieces))
        words = [learned.id_to_piece(number) for number in range(len(learned))]
        vocabulary.write_text(json.dumps({"source": words, "target": words}, ensure_ascii=False), encoding="utf-8")
    sides = {
        side: {"language": language, "tokenizer": "none", "subwords": "sentencepiece"}
        for side, language in (("source", options.source), ("target", options.target))
    }
    return CapsuleTokenizer(str(vocabulary), pieces=str(pieces), model_max_length=1024, **sides)


def set_languages(tokenizer: Any, model: CapsuleForConditionalGeneration, options: Options) -> None:
    """Let a tokenizer of many languages (NLLB, M2M-100, mBART) mark texts with ours, and translations begin so.

    Its default is another language, such as eng_Latn.
    """
    if getattr(tokenizer, "tgt_lang", "") is not None:
        return
    try:
        tokenizer.src_lang, tokenizer.tgt_lang = options.source, options.target
        marks = tokenizer("", text_target="")
        is_known = tokenizer.unk_token_id not in [*marks["input_ids"], *marks["labels"]]
    except KeyError:  # of M2M-100; the others take <unk>
        is_known = False
    if not is_known:
        pair = f"{options.source}-{options.target}"
        raise SystemExit(f"{options.baseline} does not know the languages {pair}; name them as its tokenizer does")
    first = marks["labels"][0]
    if first != tokenizer.eos_token_id:  # mBART marks the end of a text
        model.generation_config.forced_bos_token_id = first


def main() -> None:
    options, arguments = transformers.HfArgumentParser(
        (Options, Arguments), description=__doc__
    ).parse_args_into_dataclasses()
    metric = bleu(options.target, options.bleu_tokenizer, force=True)  # refuses a missing library before the training
    torch.manual_seed(arguments.seed)
    data = {split: read(options, split) for split in ("train", "valid", "test")}
    changes = {"label_smoothing": options.label_smoothing, **json.loads(options.options)}
    if options.baseline:
        tokenizer = AutoTokenizer.from_pretrained(options.baseline)
        is_ours = AutoConfig.from_pretrained(options.baseline).model_type == CapsuleConfig.model_type
        kind = CapsuleForConditionalGeneration
        start = kind.from_baseline if is_ours else kind.from_pretrained_translation
        model = start(options.baseline, options.preset, **changes)
        set_languages(tokenizer, model, options)
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

    def score(predicted):
        found, references = texts_of(predicted.predictions), texts_of(predicted.label_ids)
        return {"bleu": metric.corpus_score(found, [references]).score}

    with arguments.main_process_first():
        prepared = {
            name: rows.map(tokenise, batched=True, remove_columns=rows.column_names) for name, rows in data.items()
        }
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
    found = texts_of(trainer.predict(prepared["test"], num_beams=5).predictions)
    references = [pair[options.target] for pair in data["test"]["translation"]]
    if trainer.is_world_process_zero():
        Path(folder, "test.txt").write_text("\n".join(found) + "\n", encoding="utf-8")
        print(metric.get_signature(), metric.corpus_score(found, [references]), sep="\n")


if __name__ == "__main__":
    main()
