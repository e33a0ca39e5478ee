"""What the code of a language says about its text: its script, whether words have spaces, its BLEU.

A code is of ISO 639-1 or -3, with or without a script or a country: `zh`, `zh_CN`, `cmn_Hans`, `jpn-Jpan`.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from capsule_routing.errors import UserError

# The scripts without spaces between words: those in which Unicode breaks lines between letters (classes ID, CJ, SA, AK
# and AS of its Annex 14), but Hangul, and Tibetan, which marks syllables. For each its languages: those of which CLDR
# 47 says that it is their likely script, their codes of three letters, and the codes of countries with such a language
# that are no languages, because people write `jp`.
WITHOUT_SPACES = {
    "Hans": "zh cdo chi cjy cmn cnp csp czh gan hak hsn lzh nan wuu zho cn",
    "Hant": "yue ltc hk",
    "Hani": "how oko swi zch zeh zgb zgm zgn zhd zlj zln zlq zqe zyg zyn zzj",
    "Hanb": "",
    "Jpan": "ja ams jpn yoi jp",
    "Hrkt": "",
    "Hira": "",
    "Kana": "ain ryu",
    "Bopo": "hmj hmq",
    "Yiii": "ii iii nos nsd nsf nsv nty smh yig yiv ysd ysn ysp",
    "Tang": "txg",
    "Nshu": "zhx",
    "Kits": "zkt",
    "Thai": "th bzi cbn cog kdt khf kjt kxm lcp lwl lwm mkm mlf mpz mra nyl nyw pht phu prt pry pww skb sou tha thm "
    "tts ugo urk yoy",
    "Laoo": "lo alk brv kgd kjg kuf lao lbo llo ncq ngt pho sct sqq sss tth tto",
    "Khmr": "km brb khm krr krv okz pcb rka smu tpu xhm kh",
    "Mymr": "my aio blk bur bwe ccq csh dnu dnv hpo int jkm kht kjp kpp ksu ksw kvq kvt kxf kxk mnw mwt mya obr omx "
    "pce phk pll pwo pyx rbb rki rmz shn tco tjl tvn ybd mm",
    "Lana": "nod cuu kkh",
    "Talu": "khb",
    "Tale": "tdd thi",
    "Tavt": "blt soa tyr",
    "Ahom": "aho",
    "Bali": "kaw",
    "Batk": "btd btm",
    "Java": "osi tes",
    "Cham": "cjm",
    "Brah": "kho pka pmh psu xtq",
    "Gran": "oty",
    "Maka": "",
    "Diak": "",
    "Kawi": "",
    "Tutg": "",
    "Gukh": "",
    "Tibt": "bo adp adx bfu bkk bod bro cgk cna dka dre dz dzl dzo ght goe jda jya kbg khg kjz kkf lbj lkh luk lya muk "
    "neh npb ole otb pcr sbu sgt sip spt tcn tgf tib tsj xkf zau bt",
}
KOREAN = {"Kore": "ko kor kp", "Hang": "jje okm"}
OTHER_SCRIPTS = ("Latn", "Cyrl", "Arab")  # in which one of these languages may be written: `ja_Latn`
_SCRIPT_OF = {code: script for of in (WITHOUT_SPACES, KOREAN) for script, codes in of.items() for code in codes.split()}
_SCRIPTS = {script.lower(): script for script in (*WITHOUT_SPACES, *KOREAN, *OTHER_SCRIPTS)}
# How Unicode's names of their letters begin.
_LETTERS = re.compile(
    "CJK|HIRAGANA|HENTAIGANA|KATAKANA|BOPOMOFO|YI |TANGUT|NUSHU|KHITAN|THAI|LAO|KHMER|MYANMAR|TAI |NEW TAI|AHOM"
    "|BALINESE|BATAK|JAVANESE|CHAM |BRAHMI|GRANTHA|MAKASAR|DIVES|KAWI|TULU-TIGALARI|GURUNG KHEMA|TIBETAN"
)
# sacreBLEU's tokenisers of single languages; `char` counts characters.
TOKENISERS = {
    **dict.fromkeys(("Hani", "Hans", "Hant", "Hanb"), "zh"),
    "Jpan": "ja-mecab",
    **dict.fromkeys(KOREAN, "ko-mecab"),
}
CHARACTERS = "--bleu-tokenizer char"
EXTRAS = {"ja-mecab": "japanese", "ko-mecab": "korean"}  # of this package, with the libraries of a tokeniser


def script_of(language: str) -> str:
    """Return the script of a language, such as `Hans`: one without spaces, Korean, or another one that the code names.

    The result is empty for all others.
    """
    code, *parts = re.split("[_-]", language.lower())
    named = (_SCRIPTS[part] for part in parts if part in _SCRIPTS)
    return next(named, "") or _SCRIPT_OF.get(code, "")


def has_spaces(language: str) -> bool:
    """Return whether spaces separate the words of a language."""
    return script_of(language) not in WITHOUT_SPACES


def is_chinese(language: str) -> bool:
    """Return whether jieba cuts the language."""
    return bleu_tokeniser(language) == "zh"


def rules_of(language: str) -> str:
    """Return the name of a language for Moses: `pt` for `pt_BR`, `zh` for `zh_CN` and `cmn`, `ja` for `jpn`."""
    own = {"zh": "zh", "ja-mecab": "ja", "ko-mecab": "ko"}
    return own.get(bleu_tokeniser(language)) or re.split("[_-]", language)[0].lower()


def has_words(lines: Iterable[str]) -> bool:
    """Return whether spaces separate words in a text: it is of a script with spaces, or was cut into words."""
    characters = without = gaps = 0
    for line in lines:
        words = line.split()
        of_line = "".join(words)
        characters += len(of_line)
        without += sum(map(_is_without_spaces, of_line))
        ends = ((first[-1], second[0]) for first, second in pairwise(words))
        gaps += sum(_is_without_spaces(last) and _is_without_spaces(first) for last, first in ends)
    return 2 * without <= characters or 10 * gaps > without


@functools.cache
def _is_without_spaces(character: str) -> bool:
    return _LETTERS.match(unicodedata.name(character, "")) is not None


# --- BLEU ------------------------------------------------------------------------------------------------------------


def bleu_tokeniser(language: str) -> str:
    """Return sacreBLEU's tokeniser for a language, by the language alone.

    It is `zh`, `ja-mecab` or `ko-mecab` where sacreBLEU has one of its own, `char` for the other scripts without
    spaces, and `13a` elsewhere.
    """
    script = script_of(language)
    return TOKENISERS.get(script) or ("char" if script in WITHOUT_SPACES else "13a")


def bleu(language: str, tokeniser: str | None = None, **options: Any) -> Any:
    """Return sacreBLEU's BLEU for a language.

    Args:
        tokeniser: another tokeniser of sacreBLEU than `bleu_tokeniser(language)`. The signature says which it is.
        options: of `sacrebleu.metrics.BLEU`.

    Raises:
        UserError: sacreBLEU has no such tokeniser, or a library that it needs is not installed.
    """
    from sacrebleu.metrics import BLEU

    name = tokeniser or bleu_tokeniser(language)
    if name not in BLEU.TOKENIZERS:
        raise UserError(f"BLEU: sacreBLEU has no tokeniser {name}; choose from {', '.join(BLEU.TOKENIZERS)}")
    try:
        return BLEU(tokenize=name, **options)
    except (ImportError, RuntimeError) as error:
        extra = f"[{EXTRAS[name]}]" if name in EXTRAS else ""
        fix = f"pip install 'fairseq-capsule{extra}'"
        problem = f"BLEU of {language}: sacreBLEU's tokeniser {name} needs a library that is not installed: {fix}"
        raise UserError(f"{problem}; or compare characters, with {CHARACTERS}") from error
