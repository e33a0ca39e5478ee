"""The first stage of a corpus: the texts of all splits as SPLIT.LANG, with the hashes of their sources."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from fairseq_capsule_lab.corpora.archives import unpack
from fairseq_capsule_lab.corpora.texts import append_good_pairs, append_training_pairs
from fairseq_capsule_lab.manifests import count_lines, sha256


class RawTexts:
    """A folder of texts that a recipe fills, or several commands of a script, one after the other.

    `SHA256SUMS` gets a line for each source, `PARTS` one for each part of the training text: its name, what was taken,
    and a warning if much was left out. `limit` is the largest number of training pairs; 0: all. `find` returns the path
    of the archive with an address.
    """

    def __init__(self, folder: Path, languages: Sequence[str], find: Callable[[str], Path], limit: int):
        self.folder, self.languages, self.find, self.limit = folder, languages, find, limit
        folder.mkdir(exist_ok=True)
        train, self.sums = self.files("train")[0], folder / "SHA256SUMS"
        self.taken = count_lines(train) if train.exists() else 0  # training pairs
        noted = self.sums.read_text("utf-8", "surrogateescape").splitlines() if self.sums.exists() else []
        self.noted = {line.partition("  ")[2] for line in noted}

    def files(self, split: str) -> list[Path]:
        return [self.folder / f"{split}.{language}" for language in self.languages]

    @property
    def is_full(self) -> bool:
        return bool(self.limit) and self.taken >= self.limit

    def train(self, member: str, address: str) -> None:
        """Append the pairs of an archive to the training text.

        `member` is the name of a member without its folder, with {} for the language.
        """
        if not self.is_full:
            with self.members(address, names=[member.format(language) for language in self.languages]) as texts:
                self.append(*texts)

    def append(self, source: Path, target: Path) -> str:
        """Append the pairs of two files to the training text, up to the limit, without broken ones.

        Returns:
            the counts, and after a tab a warning if many pairs were left out; "" where the text is full.
        """
        if self.is_full:
            return ""
        left = self.limit - self.taken if self.limit else 0
        taken, counted = append_training_pairs((source, target), self.files("train"), left)
        self.taken += taken
        self.note_part(source.name, counted)
        return counted

    def note_part(self, name: str, counted: str) -> None:
        """Note what was taken of a part."""
        with open(self.folder / "PARTS", "a", encoding="utf-8", errors="surrogateescape") as parts:
            parts.write(f"{name}\t{counted}\n")

    def hold_out(self, split: str, address: str, member: str) -> None:
        """Append the pairs of an archive to a validation or test set; a broken one is an error.

        `member` is as for `train`; {side} becomes `src` and `ref`.
        """
        names = [member.format(language, side=side) for language, side in zip(self.languages, ("src", "ref"))]
        with self.members(address, names=names) as texts:
            self.append_held_out(split, texts)

    def append_held_out(
        self, split: str, files: Sequence[Path], reference: str = "", languages: Sequence[str] = ("", "")
    ) -> None:
        """Append the pairs of two files to a validation or test set, and note how many were not composed (NFC).

        `reference` and `languages` are arguments of `append_good_pairs`.
        """
        self.note_composed(files[0].name, append_good_pairs(files, self.files(split), reference, languages))

    def note_composed(self, name: str, changed: int) -> None:
        """Note how many pairs of a validation or test set were not composed (NFC), if any."""
        if changed:
            self.note_part(name, f"{changed} pairs were composed (NFC)")

    @contextmanager
    def members(self, *addresses: str, names: Sequence[str]) -> Iterator[list[Path]]:
        """Unpack members of an archive for a block. Each piece of an archive has an address."""
        folder = self.folder / "members"
        unpack([self.archive(address) for address in addresses], names, folder)
        yield [folder / name for name in names]
        shutil.rmtree(folder)

    def archive(self, address: str) -> Path:
        """Return the path of an archive, and note its hash."""
        file = self.find(address)
        self.note(file)
        return file

    def note(self, *files: Path, whole_path: bool = False) -> None:
        """Note the hashes of sources, by their names once, or by their whole paths."""
        for file in files:
            name = str(file) if whole_path else file.name
            if whole_path or name not in self.noted:
                self.noted.add(name)
                with open(self.sums, "a", encoding="utf-8", errors="surrogateescape") as sums:
                    sums.write(f"{sha256(file)}  {name}\n")
