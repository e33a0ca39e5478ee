"""Text of another domain, prepared with the dictionary of an earlier run: its unknown characters are named."""

import pytest

from capsule_routing.errors import UserError
from fairseq_capsule_lab.corpora.unknown import require_known


@pytest.fixture
def binarised(tmp_path):
    """A folder of which 20% of the English tokens are unknown, and of the German ones none."""
    (tmp_path / "dict.en.txt").write_text("a 9\nb@@ 3\n")
    (tmp_path / "train.en").write_text("a a b@@ a\na a α@@ β\na a\n")
    lines = [f"x | [{name}] bpe/train.{name}: 3 sents, 13 tokens, {share}% replaced" for name, share in SHARES.items()]
    (tmp_path / "preprocess.log").write_text("".join(f"{line} (by <unk>)\n" for line in lines))
    return tmp_path


SHARES = {"en": 20.0, "de": 0.0}


def test_unknown_characters_are_named_or_accepted(binarised):
    texts = [binarised / "train.de", binarised / "train.en"]  # the first one is not read
    wanted = r"20.00% of .*train.en is unknown to the dictionary; .*: α 10.0%, β 10.0%: check that --codes and --dict"
    with pytest.raises(UserError, match=f"{wanted} are of one run; .*: --unknown-up-to 21"):
        require_known(binarised, texts, 19.9)
    require_known(binarised, texts, 20)
