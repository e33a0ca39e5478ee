"""bash evaluates only values that a script has checked. The tests also show that the check works.

Arithmetic, array subscripts and some builtins of bash run commands inside a value, such as `a[$(touch x)]`.
"""

import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.preparing import SCRIPTS, Workplace
from tests.runs import hostile

COMPARISON = r"-(eq|ne|lt|le|gt|ge|v)"
# Only these access a variable by a name in another variable. The names are in lists of the scripts.
INDIRECT = {
    "common.sh": {'printf -v "${name//-/_}"'},
    "corpus.sh": {"${!name}", "${!name:-none}"},
}


def code_of(text):
    """Return a script without comments, here-documents and single-quoted text, which bash does not expand."""
    text = re.sub(r"<<'(\w+)'.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    # A single-quoted text or a comment, whichever begins first. An apostrophe after a letter is not a quote.
    tokens = re.compile(r"(?<!\w)'[^']*'|(?<!\S)#[^\n]*|\\.", re.DOTALL)
    return tokens.sub(lambda found: "''" if found[0].startswith("'") else "", text)


def evaluated(text, name=""):
    """Return the parts of a script that bash may evaluate."""
    code = code_of(text)
    for allowed in INDIRECT.get(name, ()):
        code = code.replace(allowed, "")
    associative = set(re.findall(r"\b(?:declare|local) -g?A (\w+)", code))
    found = [
        *re.findall(r"\(\(", code),
        *re.findall(r"\$\[[^]]*\]", code),
        *(test for test in re.findall(r"\[\[\s.*?\s\]\]", code, re.DOTALL) if re.search(rf"\s{COMPARISON}\s", test)),
        *re.findall(r"(?:\btest|\[) -v\b", code),
        *re.findall(r"\b(?:let|eval|bind -x|declare -n|local -n|typeset)\b", code),
        *re.findall(r"\b(?:declare|local|readonly|export) -\w*i", code),
        *re.findall(r"\bprintf -v[^\n]*", code),
        *re.findall(r"\$\{![^}@*]*\}", code),
        *re.findall(r"\bbash -c (?!'')[^\n]*", code),
        # The name of a file may have several lines, and one of them may be an option.
        *re.findall(r"\b(?:mapfile|readarray) (?!-d '')[^\n]*", code),
        *re.findall(r"^\s*(?:trap|source|\.) \"?\$(?!\(dirname|scripts/)[^\n]*", code, re.MULTILINE),
    ]
    for offset in re.findall(r"\$\{[#!]?[\w@*]+(?:\[[^]]*\])?:([^}]*)", code):
        found += [] if re.match(r"[-=?+]", offset) or re.fullmatch(r"\d+| -1", offset) else [f"offset {offset}"]
    for array, subscript in re.findall(r"(?:\$\{[#!]?|\b)(\w+)\[([^]]*)\](?=[^\]]*\}|\+?=)", code):
        literal = re.fullmatch(r"[@*]|-?\d+|[a-z_]+", subscript)
        found += [] if literal or array in associative else [f"{array}[{subscript}]"]
    return found


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.sh")), ids=lambda path: path.name)
def test_scripts_evaluate_no_unchecked_value(script):
    assert evaluated(script.read_text(encoding="utf-8"), script.name) == []


@pytest.mark.parametrize(
    "line",
    [
        "((x > 1))",
        "y=$((x + 1))",
        "y=$[x + 1]",
        "[[ $x -eq 1 ]]",
        "[[ $a == b && $x -gt $y ]]",
        "[[ -v $x ]]",
        "[ -v $x ]",
        "test -v $x",
        "let x=$y",
        'eval "$x"',
        "declare -i x=$y",
        "local -ri x=$y",
        'printf -v "$x" %s y',
        'echo "${!x}"',
        'echo "${x:y}"',
        'echo "${x: y:2}"',
        'echo "${a[x]:0:n}"',
        'echo "${a[$x]}"',
        "a[$x]=1",
        "a[x+1]+=(1)",
        'bash -c "$x"',
        'source "$x"',
        'trap "$x" EXIT',
        "mapfile -t files < <(find x)",
    ],
)
def test_the_check_finds_unchecked_values(line):
    assert evaluated(f"{line}\n"), line


def test_the_check_accepts_safe_code():
    text = """
    [ "$x" -gt 1 ]  # ((x))
    [[ $x == a && ! $y =~ ^[0-9]+$ ]]
    awk '{ a[$1] = (($2 + 1)) }'
    echo "${x:-1}" "${x:+y}" "${@:2}" "${@: -1}" "${a[0]}" "${a[@]}" "${#a[@]}" "${fields[beam]}"
    declare -A parts=([train]=PART_I)
    echo "${parts[$split]}"
    bash -c 'echo "$1"' - "$x"
    """
    assert evaluated(text) == []


CHECKS = r"""
while IFS= read -r -d '' text; do
    (need_positive --beam "$text") || true
    (calculate "$text" + 1) || true
    (calculate 1 + "$text") || true
    [ "$text" -gt 0 ] || true
    (take_options "train seed" "$text") || true
    (take_options "train seed" --train "$text" && [[ $train == "$text" ]]) || true
    (fingerprint "$text") || true
    (need_codes "$text") || true
    (need_dict "$text") || true
done <texts
"""


def test_values_that_common_sh_checks_run_nothing(tmp_path):
    """One shell runs many texts from hypothesis."""
    mark, found = tmp_path / "mark", set()

    @settings(max_examples=150, database=None)
    @given(st.one_of(hostile.texts(mark), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
    def collect(text):
        found.add(text)

    collect()
    place = Workplace(tmp_path, "train.sh")
    (tmp_path / "texts").write_bytes(b"".join(text.encode() + b"\0" for text in sorted(found)))
    process = place.common(CHECKS)
    assert process.returncode == 0 and not mark.exists()
    assert "syntax" not in process.errors and "bad array" not in process.errors and "invalid" not in process.errors


MODULES = ["argparse", "datetime", "fairseq_capsule_lab.runs", "json", "multiprocessing", "site", "tqdm", "torch"]
STARTS = r"""
cd folder
run_folder check out=.
versions torch
printf 'A\nB\n' | lower
printf 'a\n' | bash -c 'lower'
python "$scripts/one_line.py" x </dev/null || true
python -c 'import datetime, json, argparse, multiprocessing'
python -m tqdm </dev/null 2>/dev/null
fairseq-capsule table --help
"""


def test_modules_in_the_working_directory_are_not_imported(tmp_path):
    """The scripts work inside run folders and prepared folders."""
    mark = tmp_path / "mark"
    (tmp_path / "folder").mkdir()
    for module in MODULES:
        (tmp_path / f"folder/{module}.py").write_text(f"open({str(mark)!r}, 'a').write({module!r})")
    process = Workplace(tmp_path, "train.sh").common(STARTS)
    assert process.returncode == 0, process.errors
    assert not mark.exists(), mark.read_text()


@pytest.mark.parametrize("number", ["1000000000000000000", "99999999999", "0", "-1", "1e3", "0x1f", "08"])
@pytest.mark.parametrize("script, option", [("prepare-toy", "--train"), ("prepare-headlines", "--seed")])
def test_numbers_out_of_range_are_refused(tmp_path, script, option, number):
    process = subprocess.run(
        [SCRIPTS / f"{script}.sh", option, number, tmp_path / "out"], capture_output=True, text=True
    )
    assert process.returncode == 1 and not (tmp_path / "out").exists()
    assert process.stderr.startswith(f"{script}.sh: {option} must be a positive whole number")
    assert process.stderr.count("\n") == 1
