"""examples/transformers_training: a plain model, its training resumed, and GDR on it, without fairseq."""

import itertools
import json
import math
import os
import random
import re
import runpy
import subprocess
import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import transformers
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from capsule_routing.huggingface import CapsuleConfig, CapsuleForConditionalGeneration
from fairseq_capsule.hub import load
from fairseq_capsule_lab.export.from_transformers import CHECKPOINT, write
from tests.libraries import library

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples/transformers_training/train.py"
PROGRAM = f"import runpy, sys; sys.modules['fairseq'] = None; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
OPTIONS = "--source en --target de --use_cpu --generation_max_length 6 --report_to tensorboard"
OPTIONS += " --eval_strategy steps --eval_steps 1 --save_strategy steps --save_steps 1"
SIZES = '{"encoder_embed_dim": 16, "encoder_ffn_embed_dim": 16, "encoder_layers": 2, "decoder_layers": 1}'


def train(folder, *words, fails=False):
    command = [sys.executable, "-c", PROGRAM, "--data", ".", *OPTIONS.split(), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (finished.returncode != 0) == fails, finished.stderr
    return finished.stdout + finished.stderr


def example():
    """Load the example without `datasets`, which reads its texts and which the fast tests do not install."""
    assert transformers.Seq2SeqTrainer  # imported now: it asks for the real `datasets`
    with pytest.MonkeyPatch.context() as patch:
        datasets = SimpleNamespace(Dataset=SimpleNamespace(from_dict=dict), load_from_disk=None)
        patch.setitem(sys.modules, "datasets", datasets)
        return SimpleNamespace(**runpy.run_path(str(SCRIPT)))


def tokenizer_of(folder, texts, size):
    return example().new_tokenizer(SimpleNamespace(source="en", target="de", vocab_size=size), texts, folder)


def evaluated(model, folder, batch, **options):
    """Evaluate a model on five sentences of different lengths as the example does, in batches of a size."""
    train = example()
    data = [{"input_ids": [5, 6, 2], "labels": [*range(7, 7 + length), 2]} for length in (1, 4, 2, 9, 6)]
    own = {"generation_max_length": 3, "use_cpu": True, "report_to": "none", **options}
    arguments = train.Arguments(output_dir=str(folder), per_device_eval_batch_size=batch, **own)
    collator = transformers.DataCollatorForSeq2Seq(tokenizer_of(folder, ["a b"] * 9, 12), model=model)
    return train.Trainer(model, arguments, collator, data, data).evaluate()


@pytest.fixture
def guided():
    torch.manual_seed(0)
    sizes = {"encoder_embed_dim": 16, "encoder_ffn_embed_dim": 16, "encoder_layers": 1, "decoder_layers": 1}
    return CapsuleForConditionalGeneration(CapsuleConfig.preset("gdr_transformer_tiny", vocab_size=20, **sizes))


def test_the_nll_is_a_sum_over_tokens_whatever_the_batches_are(guided, tmp_path):
    """eval_loss of transformers is a mean over batches, with the guided losses."""
    found = [evaluated(guided, tmp_path, batch) for batch in (1, 2, 5)]
    assert found[0]["eval_nll"] == pytest.approx(found[1]["eval_nll"]) == pytest.approx(found[2]["eval_nll"])
    assert found[0]["eval_loss"] != pytest.approx(found[1]["eval_loss"])
    total = tokens = 0.0
    for length in (1, 4, 2, 9, 6):
        labels = torch.tensor([[*range(7, 7 + length), 2]])
        logits = guided.eval()(input_ids=torch.tensor([[5, 6, 2]]), labels=labels).logits.double()
        total -= logits.log_softmax(-1).gather(2, labels.unsqueeze(2)).sum().item() / math.log(2)
        tokens += length + 1
    assert found[0]["eval_nll"] == pytest.approx(total / tokens)


def test_one_batch_without_a_loss_is_a_model_without_an_nll(guided, tmp_path):
    with torch.no_grad():
        guided.get_output_embeddings().weight[15] = math.nan  # only the longest sentence has this word
    found = evaluated(guided, tmp_path, 1)
    assert math.isnan(found["eval_nll"])


def test_the_sum_with_the_guided_losses_chooses_no_model():
    arguments = example().Arguments
    with pytest.raises(SystemExit, match="includes the losses of mechanisms; give nll or bleu"):
        arguments(output_dir="out", metric_for_best_model="loss")
    assert [arguments(metric_for_best_model=name).greater_is_better for name in ("nll", "bleu")] == [False, True]


def test_lines_of_a_text_end_at_line_feeds_alone(tmp_path):
    """Python's splitlines() would shift the pairs behind such a character."""
    others = [character for character in map(chr, range(0x3000)) if len(f"a{character}b".splitlines()) > 1]
    others = [character for character in others if character not in "\r\n"]
    assert len(others) > 5
    sources, targets = [f"a{character}b" for character in others], [f"c {ord(character)}" for character in others]
    for language, lines in (("en", sources), ("de", targets)):
        (tmp_path / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = example().read(SimpleNamespace(data=tmp_path, source="en", target="de"), "train")
    assert [tuple(pair.values()) for pair in found["translation"]] == [*zip(sources, targets)]


@pytest.mark.parametrize(
    "option",
    [
        {"label_smoothing_factor": 0.1},
        {"eval_strategy": "no"},
        {"batch_eval_metrics": True},
        {"prediction_loss_only": True},
        {"predict_with_generate": False},
    ],
    ids=str,
)
def test_options_that_leave_the_example_without_its_scores_are_refused(option):
    (name,) = option
    with pytest.raises(SystemExit, match=f"--{name}"):
        example().Arguments(output_dir="out", **option)


def test_the_help_names_the_files_that_are_read_and_written(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "--help"])
    with pytest.raises(SystemExit):
        example().main()
    text = capsys.readouterr().out
    assert all(name in text for name in ("train.LANG", "test.txt", "checkpoint-N", "runs/"))


def test_text_is_composed_and_comes_back_as_it_was(tmp_path, capsys):
    composed = "Ｗｅｒ？ ½ … ﬁ é"  # SentencePiece's own normalisation changes each word
    for language in ("en", "de"):
        (tmp_path / f"train.{language}").write_text(unicodedata.normalize("NFD", composed), encoding="utf-8")
    found = example().read(SimpleNamespace(data=tmp_path, source="en", target="de"), "train")
    assert found["translation"] == [{"en": composed, "de": composed}]
    assert capsys.readouterr().out.endswith("train.de: its characters were composed (NFC)\n")
    tokenizer = tokenizer_of(tmp_path, [unicodedata.normalize("NFD", composed)] * 9, 60)
    assert tokenizer.decode(tokenizer(composed).input_ids, skip_special_tokens=True) == composed


@pytest.mark.parametrize("text", ["der Hund ", " der Hund", "der Hund\u3000", "der Hund\t"])
def test_white_space_at_an_end_is_no_piece(tmp_path, text):
    tokenizer = tokenizer_of(tmp_path, ["der Hund schläft"] * 9, 60)
    assert tokenizer(text).input_ids == tokenizer("der Hund").input_ids


def write_texts(folder, **sizes):
    """Write the first pairs of examples/parallel: as many in each split as `sizes` says."""
    for language in ("en", "de"):
        lines = iter((ROOT / f"examples/parallel/train.{language}").read_text(encoding="utf-8").splitlines())
        for split, number in sizes.items():
            text = "".join(f"{line}\n" for line in itertools.islice(lines, number))
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")


@pytest.mark.slow
def test_two_processes_evaluate_each_sentence_once(tmp_path):
    """Started as docs/transformers.md says, but on the CPU: accelerate sees no second GPU, so it needs --multi_gpu."""
    write_texts(tmp_path, train=16, valid=5, test=5)
    words = f"{SCRIPT} --data . {OPTIONS} --preset gdr_transformer_tiny --options".split()
    words += [SIZES, *"--vocab_size 100 --max_steps 1 --learning_rate 0 --lr_scheduler_type constant".split()]
    words += "--per_device_eval_batch_size 2 --output_dir".split()
    launchers = {
        "one": [sys.executable],
        "torchrun": ["torchrun", "--standalone", "--nproc_per_node", "2"],
        "accelerate": ["accelerate", "launch", "--num_processes", "2", "--multi_gpu"],
    }
    place = {
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    found = {}
    for name, launcher in launchers.items():
        done = subprocess.run(
            [*launcher, *words, name], cwd=tmp_path, env={**os.environ, **place}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name / "test.txt").read_text(encoding="utf-8").count("\n") == 5
        state = json.loads((tmp_path / name / "checkpoint-1/trainer_state.json").read_text())
        found[name] = next(log["eval_nll"] for log in state["log_history"] if "eval_nll" in log)
    assert found["torchrun"] == found["accelerate"] == pytest.approx(found["one"], rel=1e-6)


@pytest.mark.slow
def test_a_plain_model_is_trained_resumed_and_fine_tuned(tmp_path):
    write_texts(tmp_path, train=16, valid=4, test=4)
    plain = ("--output_dir", "plain", "--preset", "transformer_tiny", "--options", SIZES, "--vocab_size", "100")
    assert "BLEU = " in train(tmp_path, *plain, "--max_steps", "1")
    train(tmp_path, *plain, "--max_steps", "2")
    assert {f"checkpoint-{step}" for step in (1, 2)} <= {path.name for path in (tmp_path / "plain").iterdir()}
    assert "--label_smoothing_factor leaves out losses" in train(
        tmp_path, *plain, "--label_smoothing_factor", "0.1", fails=True
    )
    gdr = ("--output_dir", "gdr", "--baseline", "plain", "--preset", "gdr_transformer_tiny", "--logging_steps", "1")
    output = train(tmp_path, *gdr, "--max_steps", "1")
    assert "new parameters, in decoder.past_future" in output and "bow_loss" in output
    translations = (tmp_path / "gdr/test.txt").read_text(encoding="utf-8").splitlines()
    assert len(translations) == 4
    imported = tmp_path / "imported"  # fairseq reads what was trained, and translates as in the test
    imported.mkdir()
    assert write(tmp_path / "gdr", imported) == "en-de"
    sources = (tmp_path / "test.en").read_text(encoding="utf-8").splitlines()
    assert len(load(imported / CHECKPOINT, imported).translate(sources, beam=5)) == 4


@pytest.mark.slow
def test_gdr_is_fine_tuned_from_a_marian_and_its_bleu_grows(tmp_path):
    """The Marian is untrained. Each translation is its source, of other words."""
    rng = random.Random(1)
    lines = [rng.choices(range(9), k=rng.randint(2, 5)) for _ in range(400)]
    for language, letters in (("en", "abcdefghi"), ("de", "jklmnopqr")):
        texts = [" ".join(letters[word] for word in line) for line in lines]
        for split, kept in (("train", texts[:340]), ("valid", texts[340:370]), ("test", texts[370:])):
            (tmp_path / f"{split}.{language}").write_text("\n".join(kept) + "\n", encoding="utf-8")
    marian = tmp_path / "marian"
    marian.mkdir()
    pieces = {}
    for side, language in (("source", "en"), ("target", "de")):
        model = marian / f"{side}.spm"
        text = str(tmp_path / f"train.{language}")
        with open(model, "wb") as file:
            SentencePieceTrainer.train(input=text, model_writer=file, vocab_size=40, hard_vocab_limit=False)
        learned = SentencePieceProcessor(model_file=str(model))
        pieces |= dict.fromkeys(learned.id_to_piece(number) for number in range(3, len(learned)))
    vocabulary = {piece: number for number, piece in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
    (marian / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    files = [str(marian / name) for name in ("source.spm", "target.spm", "vocab.json")]
    transformers.MarianTokenizer(*files, source_lang="en", target_lang="de").save_pretrained(marian)
    sizes = {"d_model": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "encoder_layers": 1, "decoder_layers": 1}
    sizes |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64}
    # So small a model starts to learn sooner with larger weights.
    sizes |= {"scale_embedding": True, "init_std": 0.1}
    start = {"pad_token_id": len(vocabulary) - 1, "decoder_start_token_id": len(vocabulary) - 1, "eos_token_id": 0}
    config = transformers.MarianConfig(vocab_size=len(vocabulary), **sizes, **start, forced_eos_token_id=None)
    transformers.MarianMTModel(config).save_pretrained(marian)
    words = ("--output_dir", "gdr", "--baseline", "marian", "--preset", "gdr_transformer_tiny", "--eval_steps", "100")
    rate = ("--learning_rate", "0.002", "--warmup_steps", "50", "--generation_max_length", "16")
    rate += ("--per_device_train_batch_size", "32")
    output = train(tmp_path, *words, *rate, "--save_steps", "100", "--max_steps", "400", "--disable_tqdm", "True")
    found = [float(score) for score in re.findall(r"'eval_bleu': '?([\d.]+)", output)]
    assert len(found) == 4 and found[-1] > found[0] + 10, found


def test_a_library_that_bleu_needs_is_required_before_the_training(tmp_path):
    library("datasets")
    program = f"import sys; sys.modules['MeCab'] = None; {PROGRAM}"
    words = ["--data", "missing", "--source", "en", "--target", "ja", "--output_dir", str(tmp_path), "--use_cpu"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'fairseq-capsule[japanese]'; or compare characters" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_patience_goes_on_where_it_stood_and_an_ended_training_stays_ended(tmp_path):
    """With a learning rate of 0 no evaluation is better than the first one."""
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            (tmp_path / f"{split}.{language}").write_text("a b c\nb c d\n", encoding="utf-8")
    command = ("--output_dir", "out", "--preset", "transformer_tiny", "--options", SIZES, "--patience", "2")
    command += ("--learning_rate", "0", "--lr_scheduler_type", "constant", "--save_total_limit", "9")
    command += ("--vocab_size", "20")
    train(tmp_path, *command, "--max_steps", "2")
    for _ in range(2):
        output = train(tmp_path, *command, "--max_steps", "9")
        steps = sorted(path.name for path in (tmp_path / "out").glob("checkpoint-*"))
        assert steps == ["checkpoint-1", "checkpoint-2", "checkpoint-3"]
    assert "out: ended by --patience 2 after update 3" in output


def test_a_tokenizer_of_many_languages_marks_texts_with_the_given_ones(guided):
    tokenizer = transformers.NllbTokenizer(
        vocab={word: n for n, word in enumerate("<s> <pad> </s> <unk> ▁ a".split())}, merges=[]
    )
    example().set_languages(tokenizer, guided, SimpleNamespace(source="deu_Latn", target="fra_Latn", baseline="nllb"))
    tokens = tokenizer("a", text_target="a")
    marks = [tokenizer.convert_ids_to_tokens(tokens[side])[0] for side in ("input_ids", "labels")]
    assert marks == ["deu_Latn", "fra_Latn"]
    assert guided.generation_config.forced_bos_token_id == tokens["labels"][0]
    tokenizer.tgt_lang = None  # as it was loaded
    with pytest.raises(
        SystemExit, match="nllb does not know the languages xx-fra_Latn; name them as its tokenizer does"
    ):
        example().set_languages(tokenizer, guided, SimpleNamespace(source="xx", target="fra_Latn", baseline="nllb"))


def test_no_translation_begins_with_the_end_where_marks_are_at_the_end(guided):
    """As mBART's, and NLLB's in its former form."""
    vocabulary = {word: number for number, word in enumerate("<s> <pad> </s> <unk> ▁ a".split())}
    tokenizer = transformers.NllbTokenizer(vocab=vocabulary, merges=[], legacy_behaviour=True)
    example().set_languages(tokenizer, guided, SimpleNamespace(source="deu_Latn", target="fra_Latn", baseline="nllb"))
    assert tokenizer.convert_ids_to_tokens(tokenizer("a", text_target="a")["labels"])[-1] == "fra_Latn"
    assert guided.generation_config.forced_bos_token_id is None
    tokenizer.tgt_lang = None
    with pytest.raises(SystemExit, match="does not know the languages deu_Latn-xx"):
        example().set_languages(tokenizer, guided, SimpleNamespace(source="deu_Latn", target="xx", baseline="nllb"))


def test_pairs_of_datasets_are_composed():
    decomposed = unicodedata.normalize("NFD", "Tiếng Việt")
    row = {"translation": {"en": "Vietnamese", "vi": decomposed}}
    assert example().composed(row) == {
        "translation": {"en": "Vietnamese", "vi": unicodedata.normalize("NFC", decomposed)}
    }
