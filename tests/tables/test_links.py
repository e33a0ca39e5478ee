"""Links in a folder of runs are refused before a table reads or writes there."""

import pytest

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.tables.definitions import load_table
from fairseq_capsule_lab.tables.runs import Places
from fairseq_capsule_lab.tables.scales import load_scale
from fairseq_capsule_lab.tables.steps import work_of

SMALL = load_scale("small")


@pytest.mark.parametrize("link", ["small", "small/toy", "small/toy/transformer", "small/tables/mine.csv"])
def test_links_above_the_runs_are_refused(tmp_path, link):
    places = Places(tmp_path / "runs", tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (places.runs / link).parent.mkdir(parents=True)
    places.require_plain(SMALL)
    (places.runs / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LabError, match=f"{link}: a link, not a file or a folder"):
        places.require_plain(SMALL)


@pytest.mark.parametrize("place", ["seed1/log/train.log", "seed1/evaluation", "seeds1-2/compared"])
def test_runs_with_a_link_are_refused_before_a_step_writes_there(tmp_path, place):
    link = tmp_path / "runs/small/multi30k/transformer" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path)
    with pytest.raises(LabError, match=f"{place}: a link, not a file or a folder"):
        work_of(load_table("duan-table2"), SMALL, Places(tmp_path / "runs", tmp_path / "data"))


def test_a_given_baseline_is_accepted(tmp_path):
    given = tmp_path / "runs/small/multi30k/given"
    given.mkdir(parents=True)
    (tmp_path / "baseline.pt").touch()
    (given / "checkpoint_given.pt").symlink_to(tmp_path / "baseline.pt")
    work_of(load_table("duan-table2"), SMALL, Places(tmp_path / "runs", tmp_path / "data"))
