"""The task: a start from a baseline, frozen heads, overlap at validation, batches of a resumed epoch."""

import json
from argparse import Namespace

import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset
from fairseq.models import build_model
from fairseq.tasks.translation import TranslationTask
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.baseline import init_from_baseline
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationConfig, CapsuleTranslationTask
from fairseq_capsule.testing.small_models import small_options
from tests.zoo import LENGTHS, SMALL, build, logits_of, make_batch, make_sentences, make_task

BATCH = make_batch(make_sentences(LENGTHS))
ARCH = "gdr_transformer_base"
CRITERION = "label_smoothed_cross_entropy_with_routing_losses"


def make_capsule_task(words=40, **options):
    plain = make_task(words)
    return CapsuleTranslationTask(CapsuleTranslationConfig(**options), plain.src_dict, plain.tgt_dict)


def save_baseline(folder, arch="transformer", words=40, data=None, **options):
    model = build_model(Namespace(arch=arch, criterion=None, **{**SMALL, **options}), make_task(words)).eval()
    task = {"data": str(data), "source_lang": "en", "target_lang": "de"} if data else {}
    save(folder / "baseline.pt", model=model.state_dict(), cfg={"task": task}, args=None)
    return model


def save(path, **content):
    """Write the files that fairseq's reader requires."""
    history = {"optimizer_name": "FairseqAdam", "lr_scheduler_state": {}, "num_updates": 1}
    state = {"optimizer_history": [history], "extra_state": {"train_iterator": {"epoch": 1}}}
    torch.save({**state, **content}, path)


def start(folder, arch="gdr_transformer_base", words=40, **options):
    task = make_capsule_task(words, init_from_baseline=str(folder / "baseline.pt"))
    return task.build_model(Namespace(arch=arch, **{**SMALL, **options})).eval()


@pytest.mark.parametrize(
    "settings, options, moves",
    [
        ("script prepare.sh, bpe sentencepiece, tokenise none", {"eval_bleu_remove_bpe": "sentencepiece"}, False),
        ("script prepare.sh, bpe sentencepiece, tokenise none", {"eval_tokenized_bleu": True}, True),
        ("script prepare.sh, tokenise moses", {"eval_bleu_remove_bpe": "@@ "}, False),
        ("script prepare.sh, tokenise jieba, source en", {"eval_bleu_remove_bpe": "@@ "}, True),
        ("script prepare.sh, tokenise jieba, source en", {"eval_bleu_detok": "moses"}, False),
        ("script prepare.sh, tokenise characters", {"eval_bleu_remove_bpe": "sentencepiece"}, False),
        ("", {"eval_bleu_remove_bpe": "sentencepiece"}, False),
        ("", {"eval_bleu_remove_bpe": "@@ "}, True),  # its words may have been cut by another program
    ],
)
def test_a_bleu_that_cannot_move_is_refused(tmp_path, settings, options, moves):
    """fairseq would keep the first checkpoint as the best one."""
    kept = json.dumps(dict(line.split(" ", 1) for line in settings.split(", ") if line))
    for name, text in {"settings.json": kept, "codes": "", "sentencepiece.model": ""}.items():
        (tmp_path / name).write_text(text)
    for name in ("bin", "raw"):
        (tmp_path / name).mkdir()
    (tmp_path / "raw/valid.zh").write_text("我们今天在北京的学校里学习中文。\n", encoding="utf-8")
    options |= {"data": str(tmp_path / "bin"), "source_lang": "en", "target_lang": "zh", "eval_bleu": True}
    arch = Namespace(arch="transformer", **SMALL)
    if moves:
        make_capsule_task(**options).build_model(arch)
        return
    with pytest.raises(UserError, match="BLEU of joined subwords stays near 0; leave out --eval-bleu-remove-bpe"):
        make_capsule_task(**options).build_model(arch)
    make_capsule_task(**{**options, "target_lang": "de"}).build_model(arch)
    make_capsule_task(**options).build_model(arch, from_checkpoint=True)


@pytest.mark.parametrize(
    "baseline, arch, past_future",
    [
        ("transformer", "gdr_transformer_base", "gdr"),
        ("transformer", "gdr_transformer_base", "attn"),
        ("lstm", "gdr_lstm", "clf"),
    ],
)
def test_a_new_model_equals_its_baseline(tmp_path, baseline, arch, past_future, caplog):
    directions = {"encoder_bidirectional": True} if baseline == "lstm" else {}
    plain = save_baseline(tmp_path, baseline, **directions)
    with caplog.at_level("INFO"):
        model = start(tmp_path, arch, past_future=past_future)
    torch.testing.assert_close(logits_of(model, BATCH), logits_of(plain, BATCH), rtol=0, atol=0)
    taken, number = len(list(plain.parameters())), len(list(model.parameters()))
    assert f"took {taken} of the model's {number} parameter tensors; new: decoder.past" in caplog.text


def test_parameters_that_a_mechanism_adds_or_removes_are_logged_by_name(tmp_path, caplog):
    plain = save_baseline(tmp_path)
    model = build_model(Namespace(arch="transformer", criterion=None, **SMALL), make_task())
    removed = [name for name in plain.state_dict() if name.startswith("encoder") and "self_attn.out_proj" in name]
    for layer in model.encoder.layers:
        layer.self_attn.out_proj = torch.nn.Identity()
    state = {"model": plain.state_dict()}
    with caplog.at_level("INFO"):
        init_from_baseline(model, "base.pt", state, added=set(), removed=removed)
    number = len(list(model.parameters()))
    assert [record.message for record in caplog.records] == [
        f"base.pt: took {number} of the model's {number} parameter tensors; new: none",
        f"base.pt: left out, because a mechanism replaces them: {', '.join(removed)}",
    ]


def test_attention_routing_starts_from_a_baseline_too(tmp_path):
    plain = save_baseline(tmp_path)
    model = start(tmp_path, "capsule_transformer")
    assert torch.equal(model.encoder.layers[0].self_attn.q_proj.weight, plain.encoder.layers[0].self_attn.q_proj.weight)


def test_a_checkpoint_is_not_overwritten_by_the_baseline(tmp_path):
    task = make_capsule_task(init_from_baseline=str(tmp_path / "missing.pt"))
    assert task.build_model(Namespace(arch="gdr_transformer_base", **SMALL), from_checkpoint=True)


@pytest.mark.parametrize(
    "saved, started, message",
    [
        ({"words": 50}, {}, "its encoder's dictionary has 54 entries, but that of the data has 44"),
        (
            {"encoder_ffn_embed_dim": 64},
            {},
            r"encoder.layers.0.fc1.weight has the shape \(64, 32\) there and \(48, 32\)",
        ),
        ({"arch": "lstm"}, {}, r"the model has no encoder.lstm.weight_ih_l0.*; use the architecture"),
        ({"decoder_layers": 3}, {}, r"the model has no decoder.layers.2.* and \d+ more; use the architecture"),
        (
            {},
            {"share_all_embeddings": True},
            "encoder.embed_tokens.weight and decoder.embed_tokens.weight differ there",
        ),
    ],
)
def test_a_baseline_that_does_not_fit_is_named(tmp_path, saved, started, message):
    save_baseline(tmp_path, **saved)
    with pytest.raises(UserError, match=f"--init-from-baseline .*baseline.pt: .*{message}"):
        start(tmp_path, **started)


def test_other_words_in_a_dictionary_of_the_same_size_are_named(tmp_path):
    others = Dictionary()
    for index in range(40):
        others.add_symbol(f"v{index}")
    for language in ("en", "de"):
        others.save(str(tmp_path / f"dict.{language}.txt"))
    save_baseline(tmp_path, data=tmp_path)
    with pytest.raises(UserError, match="other words than those of the source dictionary of the data; prepare"):
        start(tmp_path)
    for language in ("en", "de"):
        make_task().src_dict.save(str(tmp_path / f"dict.{language}.txt"))
    start(tmp_path)
    others.add_symbol("v40")  # another size than in the checkpoint: the folder belongs to another training
    for language in ("en", "de"):
        others.save(str(tmp_path / f"dict.{language}.txt"))
    start(tmp_path)


def test_a_second_checkpoint_to_start_from_is_refused(tmp_path):
    """fairseq would load it after the baseline, and over its parameters."""
    save_baseline(tmp_path)
    task = make_capsule_task(init_from_baseline=str(tmp_path / "baseline.pt"))
    cfg = OmegaConf.create({"model": {"_name": ARCH, **small_options(ARCH)}, "checkpoint": {}})
    cfg.checkpoint.finetune_from_model = "other.pt"
    with pytest.raises(UserError, match="--init-from-baseline and --finetune-from-model other.pt exclude each other"):
        task.build_model(cfg.model)
    cfg.checkpoint.finetune_from_model = None
    task.build_model(cfg.model)


@pytest.mark.parametrize("arch", ["gdr_lstm", "capsnmt_tiny"])
def test_targets_padded_on_the_left_are_refused_for_an_lstm(arch):
    with pytest.raises(UserError, match="--left-pad-target does not work with an LSTM decoder; leave the option out"):
        build(arch, task=make_capsule_task(left_pad_target=True))


@pytest.mark.parametrize(
    "criterion, frozen",
    [
        ({"_name": CRITERION}, set()),
        ({"_name": CRITERION, "bow_weight": 0.0}, {"bow"}),
        ({"_name": CRITERION, "bow_weight": 0.0, "bca_weight": 0.0}, {"bow", "bca"}),
        ({"_name": "label_smoothed_cross_entropy"}, {"bow", "bca"}),
    ],
)
def test_heads_of_losses_that_are_off_are_frozen(criterion, frozen):
    task = make_capsule_task()
    model = task.build_model(Namespace(arch="gdr_transformer_base", **SMALL))
    built = task.build_criterion(OmegaConf.create({"sentence_avg": False, **criterion}))
    at_rest = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert {name.split(".")[2] for name in at_rest} == frozen
    loss, sample_size, _ = built(model.train(), BATCH)
    (loss / sample_size).backward()
    assert not [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]


@pytest.mark.parametrize(
    "task, heads, criterion, missing",
    [
        (make_task, "both", {"_name": "label_smoothed_cross_entropy"}, "bow, bca"),
        (make_capsule_task, "bca", {"_name": "label_smoothed_cross_entropy"}, "bca"),
        (make_task, "none", {"_name": "label_smoothed_cross_entropy"}, None),
        (make_capsule_task, "both", {"_name": CRITERION, "bow_weight": 0.0}, None),
    ],
)
def test_losses_that_the_criterion_does_not_compute_are_named(task, heads, criterion, missing, caplog):
    task = task()
    model = task.build_model(Namespace(arch="gdr_transformer_base", **{**SMALL, "guided_heads": heads})).train()
    built = task.build_criterion(OmegaConf.create({"sentence_avg": False, **criterion}))
    with caplog.at_level("WARNING"):
        for update in (0, 1, 1, 2):  # as fairseq calls it, with --update-freq
            model.set_num_updates(update)
            built(model, BATCH)
    expected = (
        f"past_future: the criterion does not compute the losses {missing}, so they are off; "
        f"--criterion {CRITERION} computes them"
    )
    assert [record.message for record in caplog.records] == ([expected] if missing else [])


def test_a_loss_without_its_head_is_refused_before_training():
    task = make_capsule_task()
    task.build_model(Namespace(arch="gdr_transformer_base", **{**SMALL, "guided_heads": "bow"}))
    with pytest.raises(UserError, match="--bca-weight 1 needs a model with this loss"):
        task.build_criterion(OmegaConf.create({"_name": CRITERION, "sentence_avg": False}))
    task.build_model(Namespace(arch="transformer", **SMALL))
    with pytest.raises(UserError, match="--bow-weight 1 needs a model with this loss"):
        task.build_criterion(OmegaConf.create({"_name": CRITERION, "sentence_avg": False}))


def test_batches_are_formed_again_in_every_epoch():
    assert not make_capsule_task().can_reuse_epoch_itr(None)
    assert issubclass(CapsuleTranslationTask, TranslationTask)


def test_batches_have_every_sentence():
    """With fairseq's default the last four of 20 sentences, the longest ones, would be in no batch."""
    task = make_capsule_task()
    sentences = [torch.full((length,), 5) for length in range(3, 23)]
    dataset = LanguagePairDataset(sentences, list(range(3, 23)), task.source_dictionary, shuffle=False)
    batches = task.get_batch_iterator(dataset=dataset, max_tokens=400, required_batch_size_multiple=8)
    numbers = [number for batch in batches.next_epoch_itr(shuffle=False) for number in batch["id"].tolist()]
    assert sorted(numbers) == list(range(20))
