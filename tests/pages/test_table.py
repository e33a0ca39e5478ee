"""The page of a table."""

from types import SimpleNamespace

from fairseq_capsule_lab.pages.table import write_table_page


def test_a_page_shows_table_plot_and_logs_and_escapes_them(tmp_path):
    tables, run = tmp_path / "tables", tmp_path / "run"
    tables.mkdir()
    run.mkdir()
    table = "| | BLEU |\n| --- | --- |\n| a \\| b &lt;i&gt; | 1.0 |\n"
    (tables / "mine.md").write_text(f"# Mine\n\n{table}\n- A <i>note</i>.\n")
    (tables / "mine.svg").write_text("<?xml version='1.0'?><svg><path/></svg>")
    (run / "train.log").write_text("loss <1>")
    missing = tmp_path / "other" / "train.log"
    page = write_table_page(SimpleNamespace(name="mine", title="<Mine>"), tables, [run / "train.log", missing])
    text = page.read_text()
    for part in (
        "<title>&lt;Mine&gt;</title>",
        "<td>a | b &lt;i&gt;</td>",
        "A &lt;i&gt;note&lt;/i&gt;.",
        "<figure><svg><path/></svg></figure>",
        "<summary>run</summary><pre>loss &lt;1&gt;</pre>",
    ):
        assert part in text
    assert "<summary>other</summary>" not in text
