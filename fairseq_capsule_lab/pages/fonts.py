"""Fonts of matplotlib for the characters of a picture."""

import functools
from collections.abc import Iterable, Set

from matplotlib import font_manager
from matplotlib.ft2font import FT2Font

USUAL = "DejaVu Sans"  # matplotlib's own
# These have whole scripts in one style. Any other installed font follows.
PREFERRED = ("Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "PingFang SC", "Microsoft YaHei")
BOXES = "Last Resort High-Efficiency"  # matplotlib's own, with a box for every character


def families(texts: Iterable[str]) -> list[str]:
    """Return the names of fonts that together have the characters of texts, as far as such fonts are installed."""
    characters = {character for text in texts for character in text if character.isprintable()}
    unusual = characters - _characters(font_manager.findfont(USUAL))
    further, missing = _further(unusual)
    if missing:
        _add_new_fonts()
        further, _ = _further(unusual)
    return [USUAL, *further]


def _further(missing: Set[str]) -> tuple[list[str], Set[str]]:
    """Return fonts with these characters, and those that no font has."""
    names = []
    for font in sorted(font_manager.fontManager.ttflist, key=_order):
        if missing and font.name != BOXES and missing & _characters(font.fname):
            names.append(font.name)
            missing = missing - _characters(font.fname)
    return names, missing


def _order(font: font_manager.FontEntry) -> tuple[int, str]:
    return PREFERRED.index(font.name) if font.name in PREFERRED else len(PREFERRED), font.name


@functools.cache
def _characters(path: str) -> Set[str]:
    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # it was uninstalled, or is damaged
        return frozenset()


@functools.cache
def _add_new_fonts() -> None:
    """Add fonts that were installed after matplotlib was used first: it keeps the list of that day."""
    known = {font.fname for font in font_manager.fontManager.ttflist}
    for path in font_manager.findSystemFonts():
        if path not in known:
            try:
                font_manager.fontManager.addfont(path)
            except Exception:  # matplotlib does not read each kind, such as fonts of bitmaps
                continue
