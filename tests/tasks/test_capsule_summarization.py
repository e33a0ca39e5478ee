"""The task: ROUGE at validation, and refused options and data."""

from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary, indexed_dataset
from fairseq.logging import metrics

from capsule_routing.errors import UserError
from capsule_routing.text.rouge import CharacterRouge
from fairseq_capsule.tasks.capsule_summarization import CapsuleSummarizationConfig, CapsuleSummarizationTask
from tests.zoo import LENGTHS, SMALL, make_batch, make_criterion, make_sentences, make_task

BATCH = make_batch(make_sentences(LENGTHS))


def make_summarization_task(**options):
    plain = make_task()
    return CapsuleSummarizationTask(CapsuleSummarizationConfig(**options), plain.src_dict, plain.tgt_dict)


def make_model(task):
    torch.manual_seed(1)
    return task.build_model(Namespace(arch="gret_transformer_tiny", **SMALL)).eval()


def validated(task, model, batches):
    """Return the values that fairseq logs for a validation."""
    criterion = make_criterion(model, task)
    with metrics.aggregate() as meters:
        task.reduce_metrics([task.valid_step(batch, model, criterion)[2] for batch in batches], criterion)
    return meters.get_smoothed_values()


def text(dictionary, tokens):
    return dictionary.string(tokens[tokens.ne(dictionary.pad())])


def test_rouge_of_a_validation_is_that_of_its_summaries():
    task = make_summarization_task(eval_rouge=True, eval_rouge_args='{"beam": 2, "max_len_b": 6}')
    model = make_model(task)
    other = make_batch(make_sentences([(3, 2), (2, 4)], seed=5))
    logged = validated(task, model, [BATCH, other])
    generator = task.build_generator([model], Namespace(beam=2, max_len_b=6))
    scores = [
        CharacterRouge().f1(text(task.tgt_dict, hypotheses[0]["tokens"]), [text(task.tgt_dict, target)])
        for batch in (BATCH, other)
        for hypotheses, target in zip(task.inference_step(generator, [model], batch), batch["target"])
    ]
    assert len(scores) == len(LENGTHS) + 2
    for name in ("rouge1", "rouge2", "rougeL"):
        assert logged[name] == round(100 * sum(f1[name] for f1 in scores) / len(scores), 2)


def test_without_rouge_nothing_is_generated(monkeypatch):
    task = make_summarization_task()
    monkeypatch.setattr(task, "inference_step", None)
    assert "rouge1" not in validated(task, make_model(task), [BATCH])


def test_an_unknown_character_never_agrees(monkeypatch):
    task = make_summarization_task(eval_rouge=True)
    unknown = BATCH["target"].clone().fill_(task.tgt_dict.unk())
    hypotheses = [[{"tokens": row}] for row in unknown]
    monkeypatch.setattr(task, "inference_step", lambda *_: hypotheses)
    logged = validated(task, make_model(task), [{**BATCH, "target": unknown}])
    assert logged["rouge1"] == 0


@pytest.mark.parametrize(
    "wrong, message",
    [
        ("beam 5", "--eval-rouge-args .*: it must be a JSON object"),
        ('{"baem": 2}', "--eval-rouge-args: baem is not an option of fairseq-generate"),
        ('{"beam": "2"}', "--eval-rouge-args: beam cannot be '2'"),
    ],
)
def test_wrong_generation_options_are_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        make_model(make_summarization_task(eval_rouge=True, eval_rouge_args=wrong))


# --- data -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path):
    """A folder with a dictionary of 11 characters and a split of two pairs. `write` makes other splits."""
    dictionary = Dictionary()
    for character in "今天有雨明日晴北京上海":
        dictionary.add_symbol(character)
    dictionary.finalize(padding_factor=8)

    def write(split, texts):
        for language, lines in (("text", texts), ("summary", ["晴"] * len(texts))):
            dictionary.save(str(tmp_path / f"dict.{language}.txt"))
            prefix = str(tmp_path / f"{split}.text-summary.{language}")
            builder = indexed_dataset.make_builder(prefix + ".bin", "mmap", len(dictionary))
            for line in lines:
                builder.add_item(dictionary.encode_line(line, add_if_not_exist=False).long())
            builder.finalize(prefix + ".idx")

    write("valid", ["今 天 有 雨", "明 日 晴"])
    return Namespace(folder=tmp_path, write=write)


def set_up(data, **options):
    given = {"best_checkpoint_metric": "loss", "maximize_best_checkpoint_metric": False, **options}
    config = CapsuleSummarizationConfig(
        data=str(data.folder), source_lang="text", target_lang="summary", dataset_impl="mmap", **given
    )
    return CapsuleSummarizationTask.setup_task(config)


def test_the_dictionary_has_the_requested_size(data):
    task = set_up(data, vocabulary=11)
    assert len(task.src_dict) == 16  # 11 characters, 4 special symbols and one word of padding
    task.load_dataset("valid")
    assert len(task.dataset("valid")) == 2


def test_a_larger_dictionary_is_refused(data):
    with pytest.raises(UserError, match="dict.text.txt: 11 characters, more than --vocabulary 10; prepare the data"):
        set_up(data, vocabulary=10)


def test_a_text_without_characters_is_refused(data):
    data.write("train", ["今 天", "", "晴", ""])
    with pytest.raises(UserError, match="train: text 2 has no characters \\(2 such texts\\); leave it out"):
        set_up(data).load_dataset("train")


def test_input_without_characters_is_refused(data):
    task = set_up(data)
    with pytest.raises(UserError, match="input: text 2 has no characters"):
        task.build_dataset_for_inference([torch.tensor([4, 2]), torch.tensor([2])], [2, 1])


@pytest.mark.parametrize(
    "options, needed",
    [
        ({"maximize_best_checkpoint_metric": True}, "--eval-rouge"),
        ({"eval_rouge": True}, "--maximize-best-checkpoint-metric"),
    ],
)
def test_the_best_checkpoint_has_the_highest_rouge_or_none(data, options, needed):
    with pytest.raises(UserError, match=f"--best-checkpoint-metric rougeL needs {needed}$"):
        set_up(data, best_checkpoint_metric="rougeL", **options)
