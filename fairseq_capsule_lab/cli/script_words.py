"""The arguments of the commands that scripts of the repository call: `scripts/train.sh` is `fairseq-capsule train`."""

from collections.abc import Sequence

from fairseq_capsule_lab.errors import LabError


def read_words(
    words: Sequence[str], options: Sequence[str], flags: Sequence[str] = (), repeated: Sequence[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """Split words into options and places.

    Args:
        words: the words after the command.
        options: names of options with a value.
        flags: names of options without one; their value is "yes".
        repeated: those of `options` whose values are joined by commas.

    Returns:
        The values by name, empty for what is not given; and the other words.

    Raises:
        LabError: an unknown option, or one without its value.
    """
    values, places = dict.fromkeys([*options, *flags], ""), []
    rest = iter(words)
    for word in rest:
        name = word.removeprefix("--")
        if not word.startswith("-"):
            places.append(word)
        elif name == word or name not in values:
            raise LabError(f"unknown option {word} (see --help)")
        elif name in flags:
            values[name] = "yes"
        else:
            value = next(rest, "")
            if not value:
                raise LabError(f"{word} requires a value (see --help)")
            values[name] = f"{values[name]},{value}" if name in repeated and values[name] else value
    return values, places
