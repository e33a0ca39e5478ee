"""BLEU of `analyze iterations` for both kinds of subwords, with a task that translates by a list."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary

from fairseq_capsule_lab.analysis import iterations
from fairseq_capsule_lab.evaluation.scores import tokenised_bleu

WORDS = {  # the same sentences with both kinds of subwords: translations, then references
    "sentencepiece": [
        ["▁He ▁come s , ▁he ▁say s .", "▁We ▁s ing ▁a ▁song ."],
        ["▁He ▁come s , ▁she ▁say s .", "▁We ▁s ing ▁a ▁song ."],
    ],
    "subword_nmt": [
        ["He come@@ s , he say@@ s .", "We s@@ ing a song ."],
        ["He come@@ s , she say@@ s .", "We s@@ ing a song ."],
    ],
}
JOINED = ["He comes , he says .", "We sing a song ."], ["He comes , she says .", "We sing a song ."]


@pytest.fixture
def quality(monkeypatch):
    """A function that returns BLEU and NLL of the sentences with a kind of subwords."""

    def compute(kind, **options):
        dictionary = Dictionary()
        translations, references = (
            [dictionary.encode_line(line, append_eos=True).long() for line in lines] for lines in WORDS[kind]
        )
        target = torch.nn.utils.rnn.pad_sequence(references, batch_first=True, padding_value=dictionary.pad())
        task = SimpleNamespace(
            target_dictionary=dictionary,
            cfg=SimpleNamespace(target_lang="en"),
            build_generator=lambda models, options: None,
            inference_step=lambda generator, models, sample: [[{"tokens": tokens}] for tokens in translations],
        )
        monkeypatch.setattr(iterations, "negative_log_likelihood", lambda model, sample, padding: (6.0, 3))
        return iterations.quality(None, task, [{"target": target}], beam=1, lenpen=1, **options)

    return compute


@pytest.mark.parametrize("kind", WORDS)
def test_bleu_is_over_words(quality, kind):
    bleu, nll = quality(kind)
    assert bleu == pytest.approx(tokenised_bleu(False).corpus_score(JOINED[0], [JOINED[1]]).score)
    assert 0 < bleu < 100 and nll == 2


def test_pieces_of_tokenised_text_are_not_tokenised_again(quality, monkeypatch):
    with monkeypatch.context() as without_moses:
        without_moses.setattr(iterations, "default_tokens", None)
        assert quality("sentencepiece", tokenised=True)[0] < quality("subword_nmt")[0]
    assert quality("subword_nmt", tokenised=False) == quality("subword_nmt")
