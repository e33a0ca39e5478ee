"""The tokenizer of an exported model: from raw text to the words of its dictionaries and back."""

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from transformers import PreTrainedTokenizer

from capsule_routing.errors import UserError
from capsule_routing.text.preparation import TextPreparation

FILES = {
    "vocabulary": "vocabulary.json",
    "codes": "codes",
    "pieces": "sentencepiece.model",
    "target_codes": "codes.target",
    "target_pieces": "sentencepiece.target.model",
}


class CapsuleTokenizer(PreTrainedTokenizer):
    """Splits raw text as the training text was split, and makes raw text of a translation.

    A source is tokenised and split into subwords, and a target (`text_target`) as its language is. A translation is
    joined and detokenised. Only the libraries that the model needs are imported: sacremoses, jieba,
    subword-nmt or sentencepiece. Special tokens in a text are words like others: a control symbol is an unknown word.

    Numbers are read as those of the target; `decode` and `convert_ids_to_tokens` take `use_source_tokenizer=True` for
    those of a source.

    Args:
        vocabulary: a JSON file with the words of both dictionaries, `source` and `target`, in their order.
        codes: the merges of subword-nmt.
        pieces: the model of SentencePiece.
        target_codes, target_pieces: those of the target, if it has its own.
        source, target: the attributes of each language's `TextPreparation`, without `codes`.
        options: those of every tokenizer in transformers.

    Raises:
        UserError: a special token has different numbers in the two dictionaries.
    """

    vocab_files_names = FILES
    model_input_names = ["input_ids", "attention_mask"]

    def __init__(
        self,
        vocabulary: str,
        codes: Optional[str] = None,
        pieces: Optional[str] = None,
        target_codes: Optional[str] = None,
        target_pieces: Optional[str] = None,
        *,
        source: Dict[str, Any],
        target: Dict[str, Any],
        **options: Any,
    ):
        words = json.loads(Path(vocabulary).read_text(encoding="utf-8"))
        self._words: Dict[str, List[str]] = {side: words[side] for side in ("source", "target")}
        self._source_numbers, self._target_numbers = (
            {word: number for number, word in enumerate(words[side])} for side in ("source", "target")
        )
        self._files = {"vocabulary": vocabulary, "codes": codes, "pieces": pieces}
        self._files.update(target_codes=target_codes, target_pieces=target_pieces)
        file = codes or pieces or ""
        self._source = replace(TextPreparation(**source), codes=file)
        self._target = replace(TextPreparation(**target), codes=target_codes or target_pieces or file)
        self._side, self._numbers = self._source, self._source_numbers  # of the language of texts
        for side in (self._source, self._target):
            side.encode("")  # reads its files
        special = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
        fixed = {"special_tokens_pattern": "eos", "split_special_tokens": True, "clean_up_tokenization_spaces": False}
        for token in ({**special, **options}[name] for name in special):
            if self._source_numbers.get(str(token)) != self._target_numbers.get(str(token)):
                raise UserError(f"{vocabulary}: {token} must have the same number in both dictionaries")
        self._controls = {str({**special, **options}[name]) for name in ("bos_token", "pad_token", "eos_token")}
        super().__init__(source=source, target=target, **self._files, **{**special, **options, **fixed})

    @property
    def preparations(self) -> Tuple[TextPreparation, TextPreparation]:
        """How the text of source and target becomes subwords and text again."""
        return self._source, self._target

    @property
    def vocab_size(self) -> int:
        return len(self._source_numbers)

    def get_vocab(self) -> Dict[str, int]:
        """Return the numbers of the source words; in the mode for targets those of the target words."""
        return dict(self._numbers)

    def _add_tokens(self, new_tokens: Sequence[Any], special_tokens: bool = False) -> int:
        for token in map(str, new_tokens):
            if token and token not in self._source_numbers:
                raise UserError(f"{token} is not in the dictionaries, which are fixed; train with a text that has it")
        return super()._add_tokens(list(new_tokens), special_tokens=special_tokens)

    def _tokenize(self, text: str, **_: Any) -> List[str]:
        return [str(self.unk_token) if word in self._controls else word for word in self._side.encode(text).split()]

    def _convert_token_to_id(self, token: str) -> int:
        return self._numbers.get(token, self._numbers[str(self.unk_token)])

    def _convert_id_to_token(self, index: int) -> str:
        return self._word(index, "target")

    def _word(self, number: int, side: str) -> str:
        if not 0 <= number < len(self._words[side]):
            raise UserError(f"no word has the number {number}; replace -100 in labels by pad_token_id")
        return self._words[side][number]

    def convert_ids_to_tokens(  # type: ignore[override]
        self, ids: Union[int, Sequence[int]], skip_special_tokens: bool = False, use_source_tokenizer: bool = False
    ) -> Union[str, List[str]]:
        """Return words of the target, or of the source. `skip_special_tokens` keeps the unknown word, as fairseq does.

        Raises:
            UserError: a number is none of a word, such as -100.
        """
        side = "source" if use_source_tokenizer else "target"
        if isinstance(ids, int):
            return self._word(ids, side)
        skipped = {self.bos_token_id, self.pad_token_id, self.eos_token_id} if skip_special_tokens else ()
        return [self._word(number, side) for number in map(int, ids) if number not in skipped]

    def _decode(  # type: ignore[override]
        self,
        token_ids: Union[int, Sequence[int]],
        skip_special_tokens: bool = False,
        use_source_tokenizer: bool = False,
        **_: Any,
    ) -> str:
        ids = [token_ids] if isinstance(token_ids, int) else token_ids
        tokens = self.convert_ids_to_tokens(ids, skip_special_tokens, use_source_tokenizer)
        return (self._source if use_source_tokenizer else self._target).decode(" ".join(tokens))

    def convert_tokens_to_string(self, tokens: List[str]) -> str:
        """Join the subwords of a translation and detokenise it."""
        return self._target.decode(" ".join(tokens))

    def _switch_to_input_mode(self) -> None:
        self._side, self._numbers = self._source, self._source_numbers

    def _switch_to_target_mode(self) -> None:
        self._side, self._numbers = self._target, self._target_numbers

    @contextmanager
    def of_targets(self) -> Iterator[None]:
        """Read texts, and give the vocabulary, as those of the target, within a `with`."""
        self._switch_to_target_mode()
        self._in_target_context_manager = True  # calls stay in this mode
        try:
            yield
        finally:
            self._in_target_context_manager = False
            self._switch_to_input_mode()

    def save_vocabulary(self, save_directory: str, filename_prefix: Optional[str] = None) -> Tuple[str, ...]:
        saved = []
        for name, file in self._files.items():
            if file is not None:
                copy = Path(save_directory, f"{filename_prefix}-{FILES[name]}" if filename_prefix else FILES[name])
                if copy.resolve() != Path(file).resolve():
                    shutil.copyfile(file, copy)
                saved.append(str(copy))
        return tuple(saved)
