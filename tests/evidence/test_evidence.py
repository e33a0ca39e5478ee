"""The program of this folder: two records of one place are equal, and a difference is shown."""

import json

import pytest

from tests.evidence.evidence import Place, compare
from tests.evidence.lists import alternatives
from tests.evidence.models import read_options
from tests.zoo import CASES


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Two copies of the checkout."""
    folders = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
    for folder in folders:
        (folder / "texts").mkdir()
    return [Place(folder, {}, folder / "texts") for folder in folders]


def write(folder, entries):
    about = {"commit": folder.name}
    (folder / "c.json").write_text(json.dumps({"about": about, "evidence": entries}))


def test_a_line_with_alternatives_is_several_calls():
    assert alternatives("{a|b c}.sh{| --help}") == ["a.sh", "a.sh --help", "b c.sh", "b c.sh --help"]


def test_the_options_are_those_of_the_tests():
    lines = {line for line, _ in read_options()[1]}
    for arch, options in CASES:
        words = [arch, *(f"--{name.replace('_', '-')} {value}" for name, value in options.items() if value is not True)]
        words += [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
        assert any(line.split()[0] == arch and all(word in line for word in words) for line in lines), words


def test_paths_and_times_are_no_difference(places, monkeypatch, capsys):
    line = 'echo "$PWD" | tee a.json; date +"%F %T" >>a.json; date +%N >b.log; basename "$REPO" >link; exit 3'
    monkeypatch.setattr("tests.evidence.evidence.read", lambda name: {"c": [line]})
    for place in places:
        write(place.folder, place.calls("c"))
    entries = json.loads((places[0].folder / "c.json").read_text())["evidence"][line]
    assert (entries["status"], entries["output"], list(entries["files"])) == (3, "PLACE/c\n", ["a.json", "link"])
    folders = [place.folder for place in places]
    assert not compare(*folders, "c", 20)
    write(places[1].folder, {line: {**entries, "output": "other\n"}, "new": {"status": 0}})
    assert compare(*folders, "c", 20)
    printed = capsys.readouterr().out
    assert (
        "c: 5 values, 2 differ (" in printed
        and "-PLACE/c\n    +other" in printed
        and "new / status: only in" in printed
    )
