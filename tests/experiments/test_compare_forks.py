"""The page of what the forks of fairseq change."""

from experiments.compare_forks import page, read_files


def test_a_page_lists_the_files_that_a_fork_changes(tmp_path):
    texts = {
        "upstream": {"a.py": "one\ntwo\n", "b.py": "x\n", "c.py": "same\n", "examples/d.py": ""},
        "first": {"a.py": "one\r\n2\r\n3\r\n", "c.py": "same\r\n", "e.yaml": "k: v\n"},
        "second": {"a.py": "one\ntwo\n", "b.py": "x\n", "c.py": "same\n", "e.yaml": "k: v\n", "f.cpp": ""},
    }
    for folder, files in texts.items():
        (tmp_path / folder / "fairseq/examples").mkdir(parents=True)
        for name, text in files.items():
            (tmp_path / folder / "fairseq" / name).write_text(text, newline="")
    upstream, *forks = (read_files(tmp_path / folder) for folder in texts)
    text = page(upstream, forks)
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == ["| `fairseq/a.py` | +2 −1 |  |", "| `fairseq/b.py` | gone |  |", "| `fairseq/e.yaml` | new | new |"]
    assert "1 of 3 files are the same in both forks" in text
