"""The message of an error is one line for any text."""

import pickle
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fairseq_capsule.data.binarised import BrokenFile
from fairseq_capsule.errors import UserError


@given(st.text())
def test_any_message_is_one_printable_line(text):
    message = str(UserError(f"a {text}"))
    assert message.isprintable()
    assert message == f"a {text}" or not text.isprintable()
    assert str(BrokenFile(Path("x"), text)).isprintable()
    assert str(pickle.loads(pickle.dumps(UserError(text)))) == str(UserError(text))
