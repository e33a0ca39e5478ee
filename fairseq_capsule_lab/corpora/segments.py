"""The segments of test sets in SGML or XML: mteval's format (WMT 2008 to 2020, IWSLT, NIST) and that of WMT since 2021.

mteval has a file for the source (`<srcset>`) and one for the references (`<refset>`). Since 2021 one XML file has the
source, references of several translators and outputs of systems. A segment is identified by its document and its number
there. The place in the file does not count: two files may have their documents in another order.
"""

import html
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from capsule_routing.errors import UserError

# How a file starts. A sentence may begin with <b>, <2de> or <doc>: no attribute and no other tag follows it there.
_ROOTS = "srcset|refset|tstset|mteval|dataset|collection|doc|html|tmx|xliff"
_MARKUP = re.compile(rf"\s*<(\?xml\b|!doctype\b|({_ROOTS})(\s+[\w:-]+\s*=|\s*>\s*<[a-z/!]))", re.IGNORECASE)
_TAG = re.compile(r"<(/?)(srcset|refset|tstset|doc|src|ref|hyp|seg)\b([^<>]*)>", re.IGNORECASE)
_END = re.compile("</seg>", re.IGNORECASE)
_SIDES = {"srcset": "src", "refset": "ref", "tstset": "hyp", "src": "src", "ref": "ref", "hyp": "hyp"}
BROKEN = re.compile("[\0\ufffd]")  # NUL, and the replacement character of a wrong conversion


class Key(NamedTuple):
    """What identifies a segment."""

    document: str
    number: str

    def __str__(self) -> str:
        return f"segment {self.number} of document {self.document}"


Text = dict[Key, str]  # in the order of the file


class Segments(NamedTuple):
    """The texts of a file: that of the source, and those of references and of systems by name.

    `languages` are those that the file states, by src, ref and hyp.
    """

    path: Path
    source: Text
    references: Mapping[str, Text]
    systems: Mapping[str, Text]
    languages: Mapping[str, str]

    def text(self, is_source: bool, reference: str = "", other: str = "") -> Text:
        """Return the text for one side of a corpus: the source or a reference; of a file with one text, that text.

        `other` is the language of the other side.

        Raises:
            UserError: the text is in that language; or there are several references, and `reference` is none of them.
        """
        texts = self.references or self.systems
        side = "ref" if self.references else "hyp"
        if self.source and (is_source or not texts):
            texts, side = {"": self.source}, "src"
        if other and _primary(self.languages.get(side, "")) == _primary(other):
            raise UserError(
                f"{self.path}: its text in the place of this side is {other}: exchange --source and --target"
            )
        if reference in texts:
            return texts[reference]
        keys = [key for text in texts.values() for key in text]
        if len(set(keys)) < len(keys):
            raise UserError(f"{self.path}: it has the references {', '.join(texts)}: choose one by --reference")
        return {key: line for text in texts.values() for key, line in text.items()}  # a translator for each document


def is_markup(name: str, start: str) -> bool:
    """Return whether a file is SGML or XML, by its start or its name."""
    endings = (".sgm", ".sgml", ".xml")
    return bool(_MARKUP.match(start)) or name.lower().removesuffix(".gz").endswith(endings)


def read_segments(path: Path, content: str) -> Segments:
    """Read the segments of a file. A UserError names a segment that is broken, or is there twice."""
    source: Text = {}
    texts: dict[str, dict[str, Text]] = {"ref": defaultdict(dict), "hyp": defaultdict(dict)}
    languages: dict[str, str] = {}
    side = translator = document = ""
    documents = number = end = 0
    for tag in _TAG.finditer(content):
        if tag.start() < end:
            continue  # in the text of a segment
        name, attributes = tag[2].lower(), tag[3]
        if tag[1]:
            document = "" if name == "doc" else document
        elif name == "doc":
            documents += 1
            number = 0
            document = _attribute(attributes, "docid", "id") or str(documents)
            translator = _attribute(attributes, "sysid") or translator
        elif name != "seg":
            side, number = _SIDES[name], 0
            documents = 0 if name.endswith("set") else documents
            translator = _attribute(attributes, "refid", "translator", "sysid", "system")
            languages.setdefault(side, _attribute(attributes, "lang", "srclang" if side == "src" else "trglang"))
        elif not document:
            raise UserError(f"{path}: a <seg> outside of any <doc>: give the files of a test set of WMT, or plain text")
        else:
            number += 1
            key = Key(document, _attribute(attributes, "id") or str(number))
            closed = _END.search(content, tag.end())
            if not closed:
                raise UserError(f"{path}, {key}: no </seg>: fetch the file again")
            end = closed.end()
            line = " ".join(html.unescape(content[tag.end() : closed.start()]).split())
            require_unbroken(f"{path}, {key}", line)
            text = source if side in ("src", "") else texts[side][translator]
            if key in text:
                raise UserError(f"{path}, {key}: it is there twice: fetch the file again, or correct its number")
            text[key] = line
    found = Segments(path, source, texts["ref"], texts["hyp"], languages)
    if not any((source, found.references, found.systems)):
        raise UserError(f"{path}: markup without <seg>; give the files of a test set of WMT, or plain text")
    return found


def refuse_unpaired(names: Sequence[object], texts: Sequence[Text]) -> None:
    """Refuse two texts, with names for the error, if a segment of one is not in the other."""
    for this, other in ((1, 0), (0, 1)):
        missing = next((key for key in texts[other] if key not in texts[this]), None)
        if missing:
            remedy = "give the files of one test set"
            raise UserError(f"{names[this]}: it has no {missing}, but {names[other]} has: {remedy}")


def _attribute(attributes: str, *names: str) -> str:
    """Return the value of the first of these attributes that has one, or ""."""
    for name in names:
        pattern = rf"""(?:^|\s){name}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^"'\s]+))"""
        value = re.search(pattern, attributes, re.IGNORECASE)
        if value and any(value.groups()):
            return html.unescape(next(filter(None, value.groups()))).strip()
    return ""


def _primary(language: str) -> str:
    """Return `pt` for `pt_BR`."""
    return re.split("[_-]", language)[0].lower()


def require_unbroken(place: str, text: str) -> None:
    """Refuse a text of a validation or test set with NUL or U+FFFD. Training pairs with one are dropped instead."""
    broken = BROKEN.search(text)
    if broken:
        raise UserError(f"{place}: U+{ord(broken[0]):04X} at character {broken.start() + 1}: fix the file")
