"""Symmetric word alignments by eflomal, an optional library."""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import List, Sequence, Set, Tuple, Union

from capsule_routing.errors import UserError, missing_library
from capsule_routing.text.files import read_lines
from fairseq_capsule_lab.values import shown

# (source word, target word), both counted from 0
Links = Set[Tuple[int, int]]

MOST_WORDS = 1024  # eflomal gives no link to a sentence of so many words

NEIGHBOURS = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]


def align(sources: Sequence[str], targets: Sequence[str]) -> Tuple[List[Links], List[Links]]:
    """Align the words of sentence pairs, split at spaces, ignoring case. Raises a UserError without eflomal.

    eflomal samples without a seed, so each run gives slightly different links. On a terminal it shows its progress.

    Returns:
        Two lists with the links of each pair: forward links, with at most one source word per target word, and backward
        links, with at most one target word per source word.
    """
    try:
        from eflomal import Aligner
    except ModuleNotFoundError as error:
        raise missing_library(error) from error
    if note := without_links(sources, targets):
        print(note, file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("forward", "backward")]
        Aligner().align(
            [line + "\n" for line in sources],
            [line + "\n" for line in targets],
            links_filename_fwd=files[0],
            links_filename_rev=files[1],
            quiet=not sys.stderr.isatty(),
        )
        forward, backward = map(read_alignments, files)
    return forward, backward


def without_links(sources: Sequence[str], targets: Sequence[str]) -> str:
    """Return how many pairs are too long for eflomal, or ""."""
    long = sum(max(len(source.split()), len(target.split())) >= MOST_WORDS for source, target in zip(sources, targets))
    return f"{long} pairs have {MOST_WORDS:,} words or more on a side: eflomal gives them no link" if long else ""


def grow_diag_final_and(forward: Links, backward: Links) -> Links:
    """Merge the links of two directions (Koehn et al. 2003).

    Start with the links of both directions. Repeatedly add a link of either direction that is next to an added link,
    also diagonally, if one of its words has no link yet. At last add the other links of either direction, forward
    first, if neither of their words has a link.
    """
    union = forward | backward
    links = forward & backward
    sources, targets = {i for i, _ in links}, {j for _, j in links}

    def add(link):
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    grown = True
    while grown:
        grown = False
        for i, j in sorted(links):
            for down, right in NEIGHBOURS:
                near = i + down, j + right
                if near in union - links and (near[0] not in sources or near[1] not in targets):
                    add(near)
                    grown = True
    for direction in (forward, backward):
        for link in sorted(direction):
            if link[0] not in sources and link[1] not in targets:
                add(link)
    return links


def read_alignments(file: Union[str, Path]) -> List[Links]:
    """Read lines such as `0-0 1-2 …`, the format of word aligners; raises a UserError if a line has something else."""
    alignments: List[Links] = []
    for number, line in enumerate(read_lines(file), 1):
        alignments.append(set())
        for text in line.split():
            link = re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", text, re.ASCII)
            if not link:
                raise UserError(
                    f"{file}, line {number}: '{shown(text)}' is no link such as 0-1; give a word aligner's output"
                )
            alignments[-1].add((int(link[1]), int(link[2])))
    return alignments
