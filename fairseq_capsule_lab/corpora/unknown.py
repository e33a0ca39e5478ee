"""The share of a training text that a dictionary does not know, and the characters that cause it."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from capsule_routing.errors import UserError
from capsule_routing.text.preparation import SPACE

MOST = 5.0  # percent of the tokens of the training text; more is often the dictionary of another corpus
NAMED = 5  # characters in the message
_SHARE = re.compile(r".*/train\.([A-Za-z_]+): .* ([0-9.e+-]+)% replaced")


def require_known(binarised: Path, texts: Iterable[Path], most: float) -> None:
    """Refuse binarised data of which more than `most` percent of a training text is unknown.

    The log of fairseq-preprocess has the shares. Only a text that is refused is read again, to name its characters.
    """
    log = (binarised / "preprocess.log").read_text(errors="replace")
    shares = {match[1]: float(match[2]) for match in map(_SHARE.match, log.splitlines()) if match}
    for text in texts:
        language = text.name.rpartition(".")[2]
        share = shares.get(language, 0)
        if share > most:
            found = ", ".join(f"{character} {100 * rate:.1f}%" for character, rate in _unknown(binarised, text))
            problem = f"{share:.2f}% of {text} is unknown to the dictionary; most frequent characters in it: {found}"
            remedy = "check that --codes and --dict are of one run; then leave such pairs out, or accept them"
            raise UserError(f"{problem}: {remedy}: --unknown-up-to {min(100, int(share) + 1)}")


def _unknown(binarised: Path, text: Path) -> list[tuple[str, float]]:
    """Return the most frequent characters of unknown tokens, each with the share of the text's tokens that have it."""
    dictionary = binarised / f"dict.{text.name.rpartition('.')[2]}.txt"
    known = {line.rpartition(" ")[0] for line in dictionary.read_text(encoding="utf-8").split("\n")}
    total, counts = 0, Counter[str]()
    with open(text, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            tokens = line.split()
            total += len(tokens)
            for token in tokens:
                if token not in known:
                    counts.update(set(token.removesuffix("@@").replace(SPACE, "")) or {SPACE})
    return [(character, number / total) for character, number in counts.most_common(NAMED)]
