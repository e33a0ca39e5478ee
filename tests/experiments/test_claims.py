"""The verdicts on the papers' claims follow from one rule and the tables of results/: experiments/claims.py."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("claims", ROOT / "experiments/claims.py")
claims = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(claims)


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs/results.md").read_text(encoding="utf-8")


def test_the_page_has_the_verdicts_that_follow_from_the_tables(page):
    lines = claims.table(claims.RESULTS)
    assert "\n".join(lines) + "\n\n" in page
    verdicts = [line.split(" | ")[1] for line in lines[2:] if "**" not in line]
    counts = [len(verdicts)] + [sum(name in verdict for verdict in verdicts) for name in ("agrees", "differs", "open")]
    numbers = re.search(r"Of (\d+) claims of the papers, (\d+) agree, (\d+) differ and (\d+) are open", page)
    assert [int(number) for number in numbers.groups()] == counts
    assert f"for all {claims.count_intervals(claims.read_claims(), claims.RESULTS)} claims" in page


@pytest.mark.parametrize(
    "claim, low, high, expected",
    [
        ({"paper": 1.0}, 0.1, 1.2, "agrees"),
        ({"paper": 1.0}, 0.1, 0.9, "agrees, smaller"),
        ({"paper": 1.0}, 1.1, 1.9, "agrees, larger"),
        ({"paper": 1.0}, -0.1, 0.9, "differs"),
        ({"paper": 1.0}, -1.2, -0.1, "differs"),
        ({"paper": 1.0}, -0.1, 1.1, "open: interval too wide"),
        ({"paper": [0.6, 0.8]}, -0.1, 0.7, "open: interval too wide"),
        ({"paper": [0.6, 0.8]}, 0.1, 0.5, "agrees, smaller"),
        ({"paper": -1.0}, -0.9, -0.1, "agrees, smaller"),
        ({"paper": -1.0}, -0.9, 0.1, "differs"),
        ({"paper": [-0.8, -0.6]}, -1.0, -0.9, "agrees, larger"),
        ({"bounds": [1, 2]}, 1.1, 1.9, "agrees"),
        ({"bounds": [1, 2]}, 0.9, 1.9, "open: interval too wide"),
        ({"bounds": [1, 2]}, 2.1, 3.0, "differs"),
        ({"bounds": [-1.6, None]}, -1.5, 9.0, "agrees"),
        ({"bounds": [-1.6, None]}, -7.0, -6.0, "differs"),
    ],
)
def test_the_rule(claim, low, high, expected):
    assert claims.verdict(claim, low, high) == expected


def test_a_claim_with_fewer_than_three_seeds_is_open(tmp_path):
    claim = {"paper": 1.0, "table": "table", "row": "+ ours", "column": "BLEU"}
    header = "row,column,mean,spread,seeds,difference,error_over_seeds,error_over_sentences\n"
    for seeds, expected in [(2, ("open: two seeds", "+1.00")), (3, ("agrees", "+1.00 (+0.89 to +1.11)"))]:
        line = f"'+ ours,BLEU,31,0.1,{seeds},1.0,0.025,0.0\n"
        (tmp_path / "table.csv").write_text(header + line)
        assert claims.judge(claim, tmp_path, 0.05) == expected


def test_a_claim_whose_table_is_not_trained_is_open(tmp_path):
    claim = {"paper": 1.0, "table": "table", "row": "+ ours", "column": "BLEU"}
    assert claims.judge(claim, tmp_path, 0.05) == ("open: not trained yet", "")
    assert claims.count_intervals({"paper": [claim]}, tmp_path) == 0


def of_git(*words):
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


@pytest.mark.parametrize("table", ["ablation", "ablation-adequacy", "ablation-contents", "ablation-lstm"])
def test_what_decides_a_claim_was_written_before_its_table_was_trained(table):
    added = of_git("log", "--diff-filter=A", "--format=%H", "--", f"experiments/results/{table}.csv").split()
    before = added and of_git("show", f"{added[-1]}^:experiments/results/claims.yaml")
    if not before:
        pytest.skip("the table is not trained yet, or its history is not here")
    decisive = ("claim", "place", "paper", "bounds", "figure", "table", "row", "column")

    def decided_by(papers):  # older versions of claims.yaml have `planned`: a table that replaces another
        of_all = ({**claim, **claim.get("planned", {})} for of_paper in papers.values() for claim in of_paper)
        return [{key: claim.get(key) for key in decisive} for claim in of_all if claim.get("table") == table]

    written = decided_by(yaml.safe_load(before))
    assert [claim for claim in decided_by(claims.read_claims()) if claim not in written] == []
    rows = yaml.safe_load(of_git("show", f"{added[-1]}^:configs/tables/{table}.yaml"))["rows"]
    now = yaml.safe_load((ROOT / f"configs/tables/{table}.yaml").read_text(encoding="utf-8"))["rows"]
    assert {label: now.get(label) for label in rows} == rows


def test_a_claim_has_a_figure_or_a_reason_of_at_most_three_words():
    for claim in (claim for of_paper in claims.read_claims().values() for claim in of_paper):
        assert len([key for key in ("open", "value", "table") if key in claim]) == 1, claim
        assert len(claim.get("open", "").split()) in (0, 2, 3), claim
        assert claim.get("open") or ("paper" in claim) != ("bounds" in claim), claim
