"""Paragraphs of the help that several corpora share."""

import textwrap

ARCHIVES = """\
  --from DIR     the folder of the archives, with their original names. Without it they are downloaded (MIRROR=URL:
                 all from there):"""
BPE = "  --bpe HOW      subword-nmt (default), sentencepiece (its unigram model) or sentencepiece-bpe"
JOINT = "  --share HOW    joint (default): one list of merges and one dictionary for both languages; or separate"
SEPARATE = "  --share HOW    separate (default): merges and a dictionary for each language; or joint: the same for both"
EARLIER = """\
  --codes FILE --dict FILE
                 OUT/codes and OUT/dict.txt of an earlier run, needed to start from a checkpoint of that run"""
EARLIER_SEPARATE = f"""\
{EARLIER}. With
                 separate BPE: its codes.zh, codes.en, dict.zh.txt and dict.en.txt"""
LIMIT = "  --limit N      only the first N training pairs, for a quick test"
RAW = """\
  OUT/raw        the original text and references for sacreBLEU; OUT/tokenised, OUT/clean and OUT/bpe: its later
                 stages"""
MANIFEST = """\
  OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts of every part and stage, hashes"""
MANIFEST_SEPARATE = """\
  OUT/codes.zh, OUT/codes.en, OUT/dict.zh.txt, OUT/dict.en.txt, and OUT/manifest.tsv: command, versions, line counts
                 of every part and stage, hashes"""
RESUMES = "The same command resumes an interrupted run. It does nothing after a finished run."


def lengths(longest: int, ratio: str) -> str:
    """Return the help of the limits of training pairs, with their defaults."""
    return f"""\
  --max-length N, --ratio X
                 leave out training pairs with more than N ({longest}) words in a sentence, or more than X ({ratio})
                 times the other's"""


def of_archives(
    usage: str, title: str, options: str, merges: str, limits: str, text: str, sets: str, separate: bool = False
) -> str:
    """Return the help of a corpus that is made from archives.

    Args:
        usage: the script, and options that it needs.
        title: what is prepared from what.
        options: the help of its own options.
        merges: the default number.
        limits: the help of the limits of training pairs.
        text: how the text is made.
        sets: the binarised sets and the raw ones.
        separate: whether each language has its own merges; otherwise both directions can be trained.
    """
    what = f"Prepare {title}, and binarise it for fairseq, in OUT/bin{'' if separate else ', for both directions'}."
    share, earlier, results = (
        (SEPARATE, EARLIER_SEPARATE, MANIFEST_SEPARATE) if separate else (JOINT, EARLIER, MANIFEST)
    )
    return f"""\
{textwrap.fill(what, 120)}

    {usage} [OPTION VALUE]... OUT

{options}
  --merges N     BPE merges ({merges})
{BPE}
{share}
{limits}
{earlier}
{LIMIT}

{text}

  OUT/bin        binarised: {sets}
{results}

{RESUMES}"""
