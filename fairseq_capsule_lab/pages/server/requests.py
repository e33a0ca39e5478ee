"""Reading and validation of requests. An invalid request raises a `Refusal`."""

import asyncio
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Tuple

if TYPE_CHECKING:  # the help of the command needs no extra library
    from starlette.requests import Request

MOST_BYTES = 64 * 1024  # maximum size of a body
MOST_CHARACTERS = 5_000  # maximum length of a sentence
MOST_BEAM = 20
SECONDS_FOR_A_BODY = 10.0
ALL = "all"


class Refusal(Exception):
    """A 4xx or 5xx answer, with one line: what is wrong, then what to do."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] = {}):
        super().__init__(message)
        self.status = status
        self.headers = dict(headers)


@dataclass(frozen=True)
class SentenceRequest:
    """A valid request.

    Attributes:
        text: one sentence, with single spaces and without control characters.
        beam: the beam size; None for the default of the server.
        arrays: the names of arrays to return; `("all",)` returns all.
    """

    text: str
    beam: int | None = None
    arrays: Tuple[str, ...] = ()


async def receive_body(request: "Request") -> bytes:
    """Receive the JSON body of a request, within the limits of size and time.

    Raises:
        Refusal: 415 if it is not declared as JSON, 413 if it is too long, 408 if it is too slow.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # pages of other sites cannot send JSON without a preflight
        raise Refusal(415, "the content type is not JSON; send Content-Type: application/json")
    # The rest of a body that is too long is not read, so the connection must close.
    too_long = Refusal(413, f"the body has more than {MOST_BYTES} bytes; send one sentence", {"Connection": "close"})
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > MOST_BYTES:
        raise too_long
    body = b""
    try:
        async with asyncio.timeout(SECONDS_FOR_A_BODY):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BYTES:
                    raise too_long
    except TimeoutError:
        raise Refusal(408, f"the body took more than {SECONDS_FOR_A_BODY:g} s; send it again") from None
    return body


def read_body(body: bytes, fields: Tuple[str, ...]) -> SentenceRequest:
    """Read the JSON body of a request; `fields` are the allowed names besides `text`.

    Raises:
        Refusal: 400 if the body is not such an object, 413 if the text is too long, 422 if it is not a sentence.
    """
    try:
        content = json.loads(body.decode("utf-8"), parse_constant=int)  # NaN is no JSON; int refuses it
    except UnicodeDecodeError:
        raise Refusal(400, "the body is not UTF-8; send JSON in UTF-8") from None
    except (ValueError, RecursionError):  # a number with thousands of digits also raises ValueError
        raise Refusal(400, 'the body is not JSON; send an object such as {"text": "a sentence"}') from None
    if not isinstance(content, dict):
        raise Refusal(400, 'the body is not a JSON object; send one such as {"text": "a sentence"}')
    unknown = sorted(content.keys() - {"text", *fields})
    if unknown:
        raise Refusal(400, f"unknown field {unknown[0][:40]!r}; the fields are: text, {', '.join(fields)}")
    return _validate(content)


def read_query(query: Mapping[str, str]) -> SentenceRequest:
    """Read the query parameters `text` and `beam`; raises a Refusal as `read_body`."""
    content: Dict[str, Any] = dict(query)
    if not content.keys() <= {"text", "beam"}:
        raise Refusal(400, "unknown parameter; the parameters are text and beam")
    if re.fullmatch(r"\d{1,6}", content.get("beam", ""), re.ASCII):
        content["beam"] = int(content["beam"])
    return _validate(content)


def _validate(content: Mapping[str, Any]) -> SentenceRequest:
    if "text" not in content:
        raise Refusal(400, "text is missing; give the sentence to translate")
    beam, arrays = content.get("beam"), content.get("arrays", [])
    if beam is not None and (type(beam) is not int or not 1 <= beam <= MOST_BEAM):  # isinstance accepts True as an int
        raise Refusal(400, f"beam is not a whole number from 1 to {MOST_BEAM}; correct it")
    if arrays == ALL:
        arrays = [ALL]
    if type(arrays) is not list or any(type(name) is not str for name in arrays):
        raise Refusal(400, 'arrays is not "all" or a list of names; correct it')
    text = content["text"]
    if type(text) is not str:
        raise Refusal(400, "text is not a string; send the sentence as a JSON string")
    if len(text) > MOST_CHARACTERS:
        long = f"text has {len(text)} characters, more than {MOST_CHARACTERS}"
        raise Refusal(413, f"{long}; send a sentence, not a document")
    text = " ".join(text.split())  # line ends and tabs become spaces, as in fairseq
    if not text:
        raise Refusal(422, "text is empty; type a sentence")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise Refusal(422, "text has control characters or unpaired surrogates; remove them")
    return SentenceRequest(text, beam, tuple(arrays))
