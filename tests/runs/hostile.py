"""Texts with a special meaning in a shell, Hydra, OmegaConf or a path, and values for JSON files."""

from hypothesis import strategies

PARTS = [
    *(
        "$(touch {mark})",
        "`touch {mark}`",
        "a[$(touch {mark})]",
        "; touch {mark};",
        "| touch {mark}",
        "'; touch {mark}; '",
    ),
    *(
        '"; touch {mark}; "',
        "$((a[$(touch {mark})]))",
        "@(touch {mark})",
        "${{oc.env:HOME}}",
        "$HOME",
        "{{a,b}}",
        "!",
        "#",
    ),
    *(
        "..",
        "/../",
        "/",
        "-",
        "--",
        "-n",
        "*",
        "?",
        "[a]",
        "[",
        "]",
        "~",
        "=",
        ",",
        ":",
        "\n",
        "\r",
        "\t",
        "\\",
        "'",
        '"',
    ),
    *(
        "\x1b[31m",
        "é",
        "語",
        "0",
        "1",
        "08",
        "0x1f",
        "1e9",
        "nan",
        "inf",
        "10000000000000000000000",
        "a",
        "x y",
        "%s",
        "&",
    ),
]


def texts(mark):
    """Texts of a few hostile parts. A program that runs one of them creates the file `mark`."""
    parts = strategies.sampled_from([part.format(mark=mark) for part in PARTS])
    return strategies.lists(parts, min_size=1, max_size=3).map("".join)


def values(mark):
    """Values of JSON or YAML."""
    plain = strategies.one_of(
        texts(mark),
        strategies.text(max_size=10),
        strategies.integers(),
        strategies.floats(allow_nan=False, allow_infinity=False),
        strategies.booleans(),
        strategies.none(),
    )
    return strategies.one_of(plain, strategies.lists(plain, max_size=3), strategies.dictionaries(texts(mark), plain))
