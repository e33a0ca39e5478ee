"""`fairseq-capsule inspect` on trained models, and `inspect` from Python."""

import numpy as np
import pytest

from capsule_routing.errors import UserError
from fairseq_capsule.models import CapsuleTransformerModel
from fairseq_capsule_lab import pages
from fairseq_capsule_lab.cli import main
from tests.integration.commands import train

ATTENTION = ["encoder_attention", "decoder_attention", "cross_attention"]


@pytest.fixture(scope="module")
def plain(data, tmp_path_factory):
    """fairseq's Transformer with other numbers of layers and heads."""
    folder = tmp_path_factory.mktemp("plain")
    width = (
        "--encoder-embed-dim 16 --decoder-embed-dim 16 --encoder-ffn-embed-dim 16 --decoder-ffn-embed-dim 16".split()
    )
    layers = "--encoder-layers 1 --decoder-layers 1 --encoder-attention-heads 2 --decoder-attention-heads 2".split()
    train(data, folder, "--max-epoch", 1, *width, *layers, arch="transformer")
    return folder / "checkpoint_last.pt"


@pytest.fixture
def inspect(data, trained, tmp_path):
    def run(*arguments, checkpoint=trained / "checkpoint3.pt"):
        return main(["inspect", str(checkpoint), str(data), "--out", str(tmp_path / "out"), *map(str, arguments)])

    return run


def names(folder):
    return sorted(path.name for path in folder.iterdir())


LISTS = ["index.html", "sentences.js"]


def files_of(name, views=ATTENTION):
    return [f"{name}-{view.replace('_', '-')}.png" for view in views] + [f"{name}.html", f"{name}.npz"]


def test_sentences_of_the_data_are_compared_with_a_plain_model(inspect, data, tmp_path, plain, capsys):
    assert inspect("--ids", "3,17", "--against", plain) == 0
    assert "index.html: sentences: 2; Attention of the encoder, Attention of the decoder" in capsys.readouterr().out
    assert names(tmp_path / "out") == sorted([*files_of("test-3"), *files_of("test-17"), *LISTS])
    source = (data.parent / "test.en").read_text().splitlines()[17]
    with np.load(tmp_path / "out/test-17.npz") as archive:
        assert archive["source"].tolist() == [*source.split(), "</s>"]
        assert archive["encoder_vertical.axes"].tolist() == ["layer", "head", "query", "key"]
        assert archive["encoder_attention"].shape[:2] == (2, 4)
        assert archive["against.encoder_attention"].shape[:2] == (1, 2)
        assert archive["against.cross_attention"].shape[2:] == archive["cross_attention"].shape[2:]
    assert (tmp_path / "out/test-3-cross-attention.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "out/test-3.html").read_text(encoding="utf-8").replace("<wbr>", "")  # names can be broken there
    told = ("capsule_transformer", f"Checkpoint: {plain}", str(data), "BLEU ", "other translation", "routes nothing")
    assert [text for text in told if text not in page] == []


def test_only_the_attention_of_a_plain_model_is_shown(inspect, tmp_path, plain, capsys):
    assert inspect("--text", "a b c", checkpoint=plain) == 0
    assert "a TransformerModel routes nothing, so only its attention is shown" in capsys.readouterr().out
    assert names(tmp_path / "out") == sorted([*files_of("text-1"), *LISTS])


@pytest.mark.filterwarnings("ignore:Glyph")  # a machine may have no font for Chinese
def test_text_of_any_kind_is_inspected(inspect, tmp_path, capsys):
    lines = ["a unheard שלום 你 好", "<b>a</b> </script> b"]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert inspect("--file", tmp_path / "lines.txt") == 0
    assert len(names(tmp_path / "out")) == 2 * 5 + len(LISTS)
    note = (
        "fairseq-capsule inspect: note: 6 of 8 words are unknown; was the data prepared with --codes and --tokenizer?"
    )
    assert capsys.readouterr().err.splitlines().count(note) == 1
    for number, line in enumerate(lines, start=1):
        with np.load(tmp_path / f"out/line-{number}.npz") as archive:
            words = [word if word in "abcdefghijkl" else f"<unk>:{word}" for word in line.split()]
            assert archive["source"].tolist() == [*words, "</s>"]


def test_a_hub_is_inspected_from_python(data, trained, plain):
    hub = CapsuleTransformerModel.from_pretrained(str(trained), "checkpoint3.pt", str(data))
    (inspection,) = pages.inspect(hub, "a b c")
    assert inspection.translation == hub.translate("a b c") and inspection.source == ("a", "b", "c", "</s>")
    assert [view.name for view in inspection.views] == ATTENTION and inspection.routed
    assert (
        inspection.plot("cross_attention", layer=1, head=2).get_suptitle() == "Attention to the source, layer 1, head 2"
    )
    beside = pages.inspect(
        hub,
        ["a b", "d"],
        beam=1,
        against=CapsuleTransformerModel.from_pretrained(str(trained), "checkpoint1.pt", str(data)),
    )
    assert [each.number for each in beside] == [1, 2] and "against.encoder_horizontal" in beside[1].arrays
    with pytest.raises(UserError, match="sentence 2 is empty"):
        pages.inspect(hub, ["a", ""])


def test_models_of_other_dictionaries_are_not_compared(data, trained, tmp_path):
    hub = CapsuleTransformerModel.from_pretrained(str(trained), "checkpoint3.pt", str(data))
    other = CapsuleTransformerModel.from_pretrained(str(trained), "checkpoint3.pt", str(data))
    other.src_dict.add_symbol("another")
    with pytest.raises(UserError, match="--against: the two models have different dictionaries"):
        pages.inspect(hub, "a", against=other)


def test_an_ensemble_is_refused(data, trained):
    hub = CapsuleTransformerModel.from_pretrained(str(trained), "checkpoint3.pt", str(data))
    hub.models.append(hub.models[0])
    with pytest.raises(UserError, match="an ensemble of several checkpoints cannot be inspected"):
        pages.inspect(hub, "a")
