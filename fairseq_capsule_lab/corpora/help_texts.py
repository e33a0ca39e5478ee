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


OWN = f"""\
Prepare your own parallel text from plain or gzipped files, and binarise it for fairseq, in OUT/bin.

    prepare.sh --source LANG --target LANG --train TEXT --valid TEXT --test TEXT [OPTION VALUE]... OUT

  TEXT           PREFIX or PREFIX,PREFIX,…: the files PREFIX.LANG or PREFIX.LANG.gz of both languages. Or SOURCE
                 TARGET: two files of any name or two addresses (https://...). --train, --valid and --test can be given
                 more than once. Several training texts are concatenated. Several test sets are called test, test1, ...
  --from DIR     a folder with the files of these addresses; without it they are downloaded to OUT/download
  --source LANG --target LANG
                 any names of letters and _, such as en, zh or pt_BR; Moses knows two-letter codes
  --valid-lines N, --test-lines N
                 without --valid or --test, take N pairs out of the training text. None of their source sentences stays
                 in the training text
  --seed N       seed of this choice (1)
{BPE}
  --merges N     number of merges of subword-nmt or of pieces of SentencePiece (10,000)
{JOINT}
  --tokenise HOW moses, jieba (Chinese by jieba, the other language by Moses), characters or none; or HOW,HOW for source
                 and target. Default: none with SentencePiece, otherwise jieba with Chinese and moses without
  --lower        lower-case everything
  --max-length N, --ratio X
                 leave out training pairs with more than N (250) words in a sentence, or more than X (9) times the
                 other's. With SentencePiece pieces are counted. --max-length none turns both limits off
  --codes FILE --dict FILE
                 OUT/codes (or OUT/sentencepiece.model) and OUT/dict.txt of an earlier run, needed to start from a
                 checkpoint of that run
{LIMIT}

Training pairs that are broken (for example not UTF-8) or empty on one side are left out and counted; over 5% of a text
are a warning. In validation and test sets they are errors. Control characters become spaces. Windows line ends and a
byte order mark are removed.

  OUT/bin        binarised: train, valid, test, test1, ...
{RAW}
  OUT/codes or OUT/sentencepiece.model, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts of every part
                 and stage, hashes

{RESUMES}"""
