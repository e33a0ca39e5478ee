"""Validation of requests. One function reads each kind of request; an invalid request raises a `Refusal`."""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Dict, Tuple

MOST_BYTES = 64 * 1024  # maximum size of a body
MOST_CHARACTERS = 5_000  # maximum length of a sentence
MOST_BEAM = 20
ALL = "all"


class Refusal(Exception):
    """A 4xx or 5xx answer, with one line: what is wrong, then what to do."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] = {}):
        super().__init__(message)
        self.status = status
        self.headers = dict(headers)


@dataclass(frozen=True)
class Asked:
    """A valid request.

    Attributes:
        text: one sentence, with single spaces and without control characters.
        beam: the beam size; None for the default of the server.
        arrays: the names of arrays to return; `("all",)` returns all.
    """

    text: str
    beam: int | None = None
    arrays: Tuple[str, ...] = ()


def read_body(body: bytes, fields: Tuple[str, ...]) -> Asked:
    """Read the JSON body of a request.

    Args:
        fields: the allowed names besides `text`.

    Raises:
        Refusal: 400 if the body is not such an object, 413 if the text is too long, 422 if it is not a sentence.
    """
    try:
        found = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise Refusal(400, "the body is not UTF-8; send JSON in UTF-8") from None
    except (ValueError, RecursionError):  # a number with thousands of digits also raises ValueError
        raise Refusal(400, 'the body is not JSON; send an object such as {"text": "a sentence"}') from None
    if not isinstance(found, dict):
        raise Refusal(400, 'the body is not a JSON object; send one such as {"text": "a sentence"}')
    unknown = sorted(found.keys() - {"text", *fields})
    if unknown:
        raise Refusal(400, f"unknown field {unknown[0][:40]!r}; the fields are: text, {', '.join(fields)}")
    return _asked(found)


def read_query(query: Mapping[str, str]) -> Asked:
    """Read the query parameters `text` and `beam`.

    Raises:
        Refusal: the same as for `read_body`.
    """
    found: Dict[str, Any] = dict(query)
    if not found.keys() <= {"text", "beam"}:
        raise Refusal(400, "unknown parameter; the parameters are text and beam")
    if "beam" in found:
        if not re.fullmatch(r"\d{1,6}", found["beam"], re.ASCII):
            raise Refusal(400, f"beam is not a whole number from 1 to {MOST_BEAM}; correct it")
        found["beam"] = int(found["beam"])
    return _asked(found)


def _asked(found: Mapping[str, Any]) -> Asked:
    if "text" not in found:
        raise Refusal(400, "text is missing; give the sentence to translate")
    beam, arrays = found.get("beam"), found.get("arrays", [])
    if beam is not None and (type(beam) is not int or not 1 <= beam <= MOST_BEAM):  # isinstance accepts True as an int
        raise Refusal(400, f"beam is not a whole number from 1 to {MOST_BEAM}; correct it")
    if arrays == ALL:
        arrays = [ALL]
    if type(arrays) is not list or any(type(name) is not str for name in arrays):
        raise Refusal(400, 'arrays is not "all" or a list of names; correct it')
    return Asked(_sentence(found["text"]), beam, tuple(arrays))


def _sentence(text: Any) -> str:
    if type(text) is not str:
        raise Refusal(400, "text is not a string; send the sentence as a JSON string")
    if len(text) > MOST_CHARACTERS:
        raise Refusal(
            413, f"text has {len(text)} characters, more than {MOST_CHARACTERS}; send a sentence, not a document"
        )
    text = " ".join(text.split())  # line ends and tabs become spaces, as in fairseq
    if not text:
        raise Refusal(422, "text is empty; type a sentence")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise Refusal(422, "text has control characters or unpaired surrogates; remove them")
    return text


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
