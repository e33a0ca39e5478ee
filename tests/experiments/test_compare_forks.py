"""The page of what the forks of fairseq change."""

from experiments.compare_forks import compare, page, read_files


def test_files_that_a_fork_changes_are_found_and_counted(tmp_path):
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
    changes = compare(upstream, forks)
    assert changes == {"fairseq/a.py": ["+2 −1", ""], "fairseq/b.py": ["gone", ""], "fairseq/e.yaml": ["new", "new"]}
    text = " ".join(page(changes).split())
    assert "3 Python and YAML files differ" in text and "(new: 1, gone: 1)" in text
    assert "1 of 3 are the same in both forks" in text


def test_the_page_has_a_row_for_each_file_that_matters_to_the_plugin():
    text = page({"fairseq/trainer.py": ["+3 −1", "+2 −1"], "fairseq/other.py": ["new", "new"]})
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert "| `fairseq/trainer.py` | updates, validation, resuming | +3 −1 | +2 −1 |" in rows
    assert "| `fairseq/sequence_generator.py` | beam search |  |  |" in rows and "other.py" not in text
