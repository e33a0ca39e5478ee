"""Different runs never share a folder."""

import dataclasses
from itertools import combinations

from fairseq_capsule_lab.tables.runs import Run
from fairseq_capsule_lab.tables.scales import load_scale

WORDS = ["model.dropout=1", "task.dropout=1", "criterion.dropout=1", "model.size=big", "task.size=big"]


def test_overrides_that_differ_only_in_their_group_have_different_names():
    setting = load_scale("smoke").setting("duan", "wmt17-zh-en", False)
    runs = [Run("smoke", setting, "transformer", (word,), 1) for word in WORDS]
    piece = dataclasses.replace(setting, overrides=(*setting.overrides, "size=big"))
    runs += [Run("smoke", setting, "transformer", (), 1), Run("smoke", piece, "transformer", (), 1)]
    for one, other in combinations(runs, 2):
        assert one.name != other.name
    assert runs[0].title == "transformer+dropout-1"


def test_a_path_in_an_override_is_one_folder():
    setting = load_scale("smoke").setting("duan", "toy", False)
    runs = [Run("smoke", setting, "transformer", (f"checkpoint.restore_file={path}",), 1) for path in ("/a/b", "-a-b")]
    assert runs[0].title == "transformer+checkpoint.restore_file-@a@b"
    assert runs[0].title != runs[1].title
