"""Reading of the dictionaries of binarised data."""

import codecs
from pathlib import Path
from typing import Any, Callable, Dict, List, Union

from fairseq.data import Dictionary
from fairseq.tokenizer import tokenize_line
from torch import Tensor

from capsule_routing.errors import UserError
from capsule_routing.text.files import read_lines

REMEDY = "copy the dictionary again from the run that made it"


class TextDictionary(Dictionary):
    """fairseq's dictionary, in which `<s>`, `<pad>`, `</s>` and `<unk>` as words of a text are unknown words.

    With fairseq's own, a word `<pad>` is padding to the model.
    """

    def encode_line(
        self, line: str, line_tokenizer: Callable[[str], List[str]] = tokenize_line, *args: Any, **options: Any
    ) -> Tensor:
        """Return the numbers of the words of a line, as fairseq does."""
        own = self.symbols[: self.nspecial]

        def words(text: str) -> List[str]:
            return [self.unk_word if word in own else word for word in line_tokenizer(text)]

        return super().encode_line(line, words, *args, **options)


def read_dictionary(path: Union[str, Path]) -> Dictionary:
    """Read a dictionary of fairseq-preprocess.

    A UserError says if it is missing, empty, not in UTF-8, or not in fairseq's format, or has a symbol twice.
    """
    try:
        read_lines(path)
        if Path(path).read_bytes().startswith(codecs.BOM_UTF8):  # fairseq would add it to the first symbol
            raise UserError(f"{path}, line 1: a byte order mark before the first symbol; {REMEDY}")
        dictionary = TextDictionary.load(str(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; name a folder that fairseq-preprocess made") from error
    except (ValueError, RuntimeError) as error:
        raise UserError(f"{path}: {error}; {REMEDY}") from error
    if len(set(dictionary.symbols)) < len(dictionary):  # fairseq allows it by a flag, which fairseq-preprocess drops
        raise UserError(f"{path}: a symbol occurs twice; name a dictionary without #fairseq:overwrite")
    return dictionary


def read_dictionaries(folder: Path) -> Dict[str, Dictionary]:
    """Read the dictionaries of a folder, by language. Raises a UserError if there is none, or one is broken."""
    files = sorted(folder.glob("dict.*.txt"))
    if not files:
        raise UserError(f"{folder}: no dict.*.txt; name a folder that fairseq-preprocess made")
    return {file.name[len("dict.") : -len(".txt")]: read_dictionary(file) for file in files}
