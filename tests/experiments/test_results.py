"""Figures from generated run folders, and how they are printed."""

import csv
import io
import json

import pytest
from scipy import stats

from capsule_routing.errors import UserError
from experiments.tables.definitions import load_table
from experiments.tables.plots import curves, plot
from experiments.tables.printing import analysis, csv_lines, markdown
from experiments.tables.results import gather
from experiments.tables.scales import load_scale
from fairseq_capsule_lab.analysis.output import escaped

SMALL = load_scale("small")
TRANSFORMER, ENCODER = "transformer", "capsule_transformer+decoder_routing-none"
DECODER = "capsule_transformer+encoder_routing-none"
GDR = "gdr_transformer+on-transformer"
GDR_SUM = "gdr_transformer+guided_reduction-sum+on-transformer"  # of the comparison


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content) if not isinstance(content, str) else content)


class Runs:
    """Writes the files of train.sh, evaluate.sh and the measures."""

    def __init__(self, workspace, scale=SMALL, data="multi30k"):
        self.workspace, self.scale = workspace, scale
        self.root = workspace.runs / scale.name / data

    def folder(self, title, seed=1):
        return self.root / title / f"seed{seed}"

    def finish(self, title, seed=1):
        put(self.folder(title, seed) / "settings.json", {"config": {}})
        put(self.folder(title, seed) / "finished", "")

    def score(self, title, bleu, seed=1, split="test", against=None, difference=None, p=None):
        self.finish(title, seed)
        score = {"score": bleu, "label": "tokenised BLEU", "text": "its tokens", "signature": "case:lc"}
        put(
            self.folder(title, seed) / "evaluation" / split / "scores.json",
            {"scores": dict.fromkeys(("tokenised_bleu", "chrf"), score)},
        )
        if against:
            compared = {**score, "against": {"difference": difference, "p": p}}
            file = self.folder(title, seed) / "compared" / against / f"{split}.json"
            put(file, {"scores": {"tokenised_bleu": compared}})

    def measure(self, title, source, content, seed=1):
        self.finish(title, seed)
        put(self.folder(title, seed) / "measures" / f"{source}.json", content)

    def gathered(self, table):
        return gather(load_table(table), self.scale, self.workspace)


@pytest.fixture
def runs(workspace):
    return Runs(workspace)


def test_means_and_spreads_are_over_seeds(runs):
    for seed, baseline, bleu, p in ((1, 30.0, 31.0, 0.0001), (2, 32.0, 31.5, 0.02), (5, 31.0, 32.0, 0.05)):
        runs.score(TRANSFORMER, baseline, seed)
        runs.score(ENCODER, bleu, seed, against=TRANSFORMER, difference=bleu - baseline, p=p)
    results = runs.gathered("duan-table2")
    figures = results.cells["encoder"][0][""]
    assert figures.values == (31.0, 31.5, 32.0)
    assert figures.mean == 31.5 and figures.spread == pytest.approx(0.5)
    assert figures.difference == pytest.approx((1.0 - 0.5 + 1.0) / 3)
    assert figures.ps == (0.0001, 0.02, 0.05)
    text = markdown(results)
    assert "| encoder | 24.87 | 31.50 ± 0.50 (+0.50, p < 0.001, 0.020, 0.050) | missing |" in text
    assert "for each seed the p of a paired bootstrap" in text
    assert results.cells["Transformer"][0][""].spread == pytest.approx(1.0)


def compare(runs, title, baseline, bleu, errors, other="transformer", splits=("test",)):
    """Write the scores of several seeds, and their comparison for each split."""
    for split, error in zip(splits, errors):
        for seed, (theirs, ours) in enumerate(zip(baseline, bleu), 1):
            runs.score(other, theirs, seed, split)
            runs.score(title, ours, seed, split)
        system = {"scores": bleu, "effect": {"error_over_sentences": error}}
        file = runs.root / title / f"seeds1-{len(bleu)}" / "compared" / other / f"{split}.json"
        put(file, {"scores": {"tokenised_bleu": [{"scores": baseline}, system]}})


def test_several_seeds_have_an_interval_and_a_corrected_p(runs):
    compare(runs, ENCODER, [30.0, 31.0, 30.4], [30.9, 31.2, 31.3], [0.0])
    compare(runs, DECODER, [30.0, 31.0, 30.4], [30.2, 31.1, 30.5], [0.3])
    results = runs.gathered("duan-table2")
    encoder, decoder = (results.cells[row][0][""].effect for row in ("encoder", "decoder"))
    expected = stats.ttest_rel([30.9, 31.2, 31.3], [30.0, 31.0, 30.4])
    interval = expected.confidence_interval(0.95)
    assert (encoder.difference, encoder.low, encoder.high) == pytest.approx((2 / 3, interval.low, interval.high))
    assert encoder.p == pytest.approx(expected.pvalue) and encoder.p_adjusted == pytest.approx(2 * expected.pvalue)
    assert decoder.p_adjusted == decoder.p and decoder.high - decoder.difference > 0.3 * 1.96
    shown = f"31.13 ± 0.21 (+0.67, {interval.low:+.2f} to {interval.high:+.2f}, p {2 * expected.pvalue:.3f})"
    text = markdown(results)
    assert f"| encoder | 24.87 | {shown} |" in text
    assert "95% interval over seeds and sentences" in text and "bootstrap" not in text
    line = next(line for line in csv_lines(results) if line.row == "encoder")
    assert (line.low, line.high, line.p_over_seeds) == (encoder.low, encoder.high, encoder.p_adjusted)
    assert (line.error_over_seeds, line.error_over_sentences) == pytest.approx((stats.sem([0.9, 0.2, 0.9]), 0))


def test_the_effect_on_several_test_sets_is_that_of_their_mean(runs):
    splits = ("test", "test1", "test2")
    continued = "continued+on-transformer"
    compare(runs, GDR, [30.0, 31.0], [30.5, 31.7], [0.3, 0.4, 0.0], continued, splits)
    effect = runs.gathered("zheng-table1").cells["GDR + BOW + BCA (OURS)"][-1][""].effect
    assert effect.difference == pytest.approx(0.6)
    assert effect.error_over_sentences == pytest.approx(0.5 / 3)
    (runs.root / GDR / "seeds1-2" / "compared" / continued / "test2.json").unlink()
    assert runs.gathered("zheng-table1").cells["GDR + BOW + BCA (OURS)"][-1][""].effect is None


def test_a_comparison_of_other_seeds_is_not_shown(runs):
    compare(runs, ENCODER, [30.0, 31.0], [30.9, 31.2], [0.1])
    assert runs.gathered("duan-table2").cells["encoder"][0][""].effect
    runs.score(TRANSFORMER, 30.0, seed=3)
    results = runs.gathered("duan-table2")
    assert results.cells["encoder"][0][""].effect  # its third seed has no score yet
    assert "- ±: the standard deviation over seeds; 3 for *Transformer*; 2 for *encoder*.\n" in markdown(results)
    runs.score(ENCODER, 30.0, seed=3)
    assert runs.gathered("duan-table2").cells["encoder"][0][""].effect is None


def test_a_difference_of_some_seeds_is_not_shown_beside_the_mean_of_all(runs):
    for seed, bleu in ((1, 30.0), (2, 31.0)):
        runs.score(TRANSFORMER, bleu, seed=seed)
    runs.score(ENCODER, 32.0, seed=1, against=TRANSFORMER, difference=2.0, p=0.01)
    assert runs.gathered("duan-table2").cells["encoder"][0][""].differences == (2.0,)
    runs.score(ENCODER, 30.0, seed=2)
    figures = runs.gathered("duan-table2").cells["encoder"][0][""]
    assert figures.values == (32.0, 30.0) and figures.differences == () == figures.ps


@pytest.mark.parametrize("theirs, ours", [([30.0], [31.0]), ([30.0, 30.5, 31.0], [31.0, 31.5, 32.0])])
def test_a_comparison_of_another_number_of_seeds_is_not_shown(runs, theirs, ours):
    """The comparison on one test set is of other seeds; those on the other test sets are complete."""
    splits, continued = ("test", "test1", "test2"), "continued+on-transformer"
    compare(runs, GDR, [30.0, 31.0], [30.5, 31.7], [0.3, 0.4, 0.0], continued, splits)
    system = {"scores": ours, "effect": {"error_over_sentences": 0.1}}
    file = runs.root / GDR / "seeds1-2" / "compared" / continued / "test1.json"
    put(file, {"scores": {"tokenised_bleu": [{"scores": theirs}, system]}})
    cells = runs.gathered("zheng-table1").cells["GDR + BOW + BCA (OURS)"]
    assert cells[-1][""].values == (pytest.approx(30.5), pytest.approx(31.7))
    assert [points[""].effect for points in (cells[-1], cells[-3])] == [None, None]


def test_nll_is_compared_over_seeds(runs):
    continued, pairs = "continued+on-transformer", [(2.40, 2.43), (2.38, 2.42), (2.41, 2.43)]
    for seed, (theirs, ours) in enumerate(pairs, 1):
        for title, nll in ((continued, theirs), (GDR_SUM, ours)):
            runs.measure(title, "nll", {"rows": [{"nll": nll}]}, seed)
    table = load_table("comparison")
    column = [column.label for column in table.columns].index("NLL")
    results = gather(table, SMALL, runs.workspace)
    effect = results.cells["+ GDR, sum"][column][""].effect
    expected = stats.ttest_rel(*zip(*[(ours, theirs) for theirs, ours in pairs]))
    assert (effect.difference, effect.p) == pytest.approx((0.03, expected.pvalue))
    assert results.cells["Transformer, continued"][column][""].effect is None
    assert "over seeds and sentences (NLL: over seeds only)" in markdown(results)
    (runs.folder(continued, 3) / "measures" / "nll.json").unlink()
    figures = gather(table, SMALL, runs.workspace).cells["+ GDR, sum"][column][""]
    assert figures.effect is None and len(figures.values) == 3


VALID = (
    "[2026-11-23 01:55:17,978][valid][INFO] - epoch {epoch:03d} | valid on 'valid' subset | loss 9 | nll_loss {nll} | "
    "num_updates {updates}\n"
)


def test_learning_curves_have_bands_over_seeds(runs, tmp_path):
    for seed, nlls in ((1, (5.0, 4.0, 3.0)), (2, (5.5, 4.2))):
        runs.finish(TRANSFORMER, seed)
        lines = (VALID.format(epoch=n, nll=nll, updates=124 * n) for n, nll in enumerate(nlls, 1))
        put(runs.folder(TRANSFORMER, seed) / "train.log", "".join(lines))
    drawn = curves(load_table("comparison"), SMALL, runs.workspace)
    first, second = drawn.rows  # of the third point only one seed is known
    assert (first.updates, first.seeds, first.mean, first.low, first.high) == (124, 2, 5.25, 5.0, 5.5)
    assert (second.row, second.mean) == ("Transformer", pytest.approx(4.1))
    [axis] = drawn.figure.axes
    assert axis.get_ylabel().endswith("from scratch") and list(axis.get_lines()[0].get_ydata()) == [5.25, 4.1]
    assert {path.name for path in drawn.write(tmp_path)} == {
        f"comparison-curves.{kind}" for kind in ("csv", "png", "svg")
    }


def test_seeds_validated_at_different_updates_have_no_curve(runs):
    for title, steps in ((TRANSFORMER, (100, 124)), (GDR_SUM, (124, 124))):
        for seed, updates in enumerate(steps, 1):
            runs.finish(title, seed)
            put(runs.folder(title, seed) / "train.log", VALID.format(epoch=1, nll=4.0, updates=updates))
    assert [point.row for point in curves(load_table("comparison"), SMALL, runs.workspace).rows] == ["+ GDR, sum"]


def test_a_comparison_with_another_run_is_not_shown(runs):
    runs.score(TRANSFORMER, 30.0)
    runs.score(ENCODER, 31.0, against=GDR, difference=9.0, p=0.001)
    figures = runs.gathered("duan-table2").cells["encoder"][0][""]
    assert figures.values == (31.0,) and figures.difference is None and figures.ps == ()


def test_the_mean_over_test_sets_is_printed(runs):
    for split, bleu in (("test", 40.0), ("test1", 32.0), ("test2", 27.0)):
        runs.score(TRANSFORMER, bleu, split=split)
        runs.score(
            "gdr_transformer+on-transformer",
            bleu + 1,
            split=split,
            against="continued+on-transformer",
            difference=0.5,
            p=0.2,
        )
    cells = runs.gathered("zheng-table1").cells
    assert cells["Transformer"][-1][""].values == (33.0,)
    mean = cells["GDR + BOW + BCA (OURS)"][-1][""]
    assert mean.values == (34.0,) and mean.difference == 0.5 and mean.ps == ()
    assert cells["GDR + BOW + BCA (OURS)"][5][""].ps == (0.2,)
    assert cells["Transformer"][3][""].missing == "valid is not scored"
    beside_itself = cells["Transformer"][1][""]
    assert beside_itself.values == () and beside_itself.missing == ""


def test_the_reason_for_a_missing_figure_is_printed(runs):
    runs.score(TRANSFORMER, 30.0)
    put(runs.folder(ENCODER) / "settings.json", {"config": {}})
    runs.finish("capsule_transformer")
    cells = runs.gathered("duan-table2").cells
    assert cells["Transformer"][1][""].missing == "size is not measured"
    assert cells["encoder"][0][""].missing == "its training is not finished"
    assert cells["decoder"][0][""].missing == "not trained"
    assert cells["encoder and decoder"][0][""].missing == "test is not scored"
    text = markdown(runs.gathered("duan-table2"))
    assert "- Missing: *decoder*: BLEU, parameters: not trained.\n" in text


def test_quality_is_drawn_over_speed(runs, tmp_path):
    """The model of fairseq is not compared with itself; its ratio is 1."""
    for split in ("test", "test1", "test2"):
        runs.score(TRANSFORMER, 30.0, split=split)
        runs.score(GDR_SUM, 31.0, split=split)
        runs.score("capsnmt", 29.0, split=split)  # without a speed: no point
    runs.measure(GDR_SUM, "throughput-generate", {"arch": "x", "ratio": 0.85})
    results = runs.gathered("comparison")
    [axis] = plot(results).axes
    drawn = {bar.get_label(): tuple(map(float, bar.lines[0].get_xydata()[0])) for bar in axis.containers}
    assert drawn == {"Transformer": (1.0, 30.0), "+ GDR, sum": (0.85, 31.0)}
    assert {path.suffix for path in analysis(results).write(tmp_path)} == {".md", ".csv"}
    assert {path.suffix for path in analysis(results, figure=True).write(tmp_path)} == {".md", ".csv", ".png", ".svg"}


def test_measures_read_their_figures(runs):
    runs.measure(TRANSFORMER, "size", {"models": [{"parameters": 2568192, "embeddings": 1243136}]})
    runs.measure(GDR, "throughput-train", {"arch": "x", "ratio": 0.83, "ratios": {"x": 0.83, "x + losses": 0.56}})
    runs.measure(GDR, "throughput-generate", {"arch": "x", "ratio": 0.85})
    runs.measure(GDR, "overlap", {"rows": [{"part": "all", "past": 0.722, "future": 0.725}, {"past": 0, "future": 0}]})
    runs.measure(GDR, "coverage", {"rows": [{"cdr": 0.79, "under": 2.5, "over": 0.5}]})
    cells = runs.gathered("zheng-table1").cells
    assert cells["Transformer"][0][""].values == (2568192 - 1243136,)
    assert [cells["GDR + BOW + BCA (OURS)"][number][""].mean for number in (1, 2)] == [0.56, 0.85]
    cells = runs.gathered("zheng-table3").cells
    assert [points[""].mean for points in cells["OURS"]] == [0.79, 0.5, 2.5, 0.722, 0.725]
    assert cells["Transformer"][3][""].missing == "" and cells["Transformer"][0][""].missing


def test_figures_of_probe_and_latency_are_read(runs):
    probe = "probe+criterion.probe_reads-last+on-gret_transformer+on-transformer"
    runs.measure(probe, "probe", {"rows": [{f"bag_recall_{top}": top / 2000 for top in (200, 500, 1000)}]})
    cells = runs.gathered("weng-table5").cells
    assert [points[""].mean for points in cells["Last"]] == [10.0, 25.0, 50.0]
    latency = {
        "archs": ["a", "b"],
        "milliseconds": {"a": {"mean": 5.0}, "b": {"mean": 9.0}},
        "speedup": {"a": 1.8, "b": 1},
    }
    runs.measure("capsnmt+aggregation_capsules-4", "latency", latency)
    cells = runs.gathered("wang-table3").cells
    assert [points[""].mean for points in cells["4 capsules"]] == [5.0, 1.8]


def test_scores_are_drawn_by_length(runs, tmp_path):
    for title, bleus in ((TRANSFORMER, (40.0, 30.0)), (GDR, (0.0, 33.0))):
        rows = [{"words": w, "bleu": b, "length_ratio": 1.0} for w, b in zip(("≤ 10", "> 10"), bleus)]
        runs.measure(title, "lengths", {"rows": rows})
    results = runs.gathered("zheng-figure5")
    assert results.cells["OURS"][0]["> 10"].mean == 33.0
    assert "| OURS | 0.00 | 33.00 | 1.000 | 1.000 |" in markdown(results)
    [axis, _] = plot(results).axes
    assert [list(line.get_ydata()) for line in axis.get_lines()] == [[40.0, 30.0], [0.0, 33.0]]
    names = {path.name for path in analysis(results).write(tmp_path)}
    assert names == {f"zheng-figure5.{suffix}" for suffix in ("md", "csv", "png", "svg")}


def test_scores_are_drawn_over_a_grid(runs):
    runs.score("capsnmt+aggregation_capsules-2+aggregation_iterations-2", 20.0)
    runs.score("capsnmt+aggregation_capsules-2", 21.0)
    runs.score("capsnmt", 25.0)
    [axis] = plot(runs.gathered("wang-figure3")).axes
    series = {line.get_label(): list(line.get_ydata()) for line in axis.get_lines()}
    assert series["2 capsules"][:2] == [20.0, 21.0] and series["6 capsules"][1] == 25.0
    assert [label.get_text() for label in axis.get_xticklabels()] == ["2", "3", "4", "5"]


def test_a_missing_row_keeps_its_place_in_a_figure(runs, tmp_path):
    for split, bleu in (("test", 40.0), ("test1", 30.0), ("test2", 20.0)):
        runs.score("gdr_transformer+past_future-clf+on-transformer", bleu, split=split)
    results = runs.gathered("zheng-figure6")
    [axis] = plot(results).axes
    labels = [label.get_text() for label in axis.get_xticklabels()]
    drawn = [list(point.lines[0].get_ydata()) for point in axis.containers]
    assert len(labels) == len(drawn) == 5 and drawn[labels.index("CLF")] == [30.0]
    assert len(analysis(results).write(tmp_path)) == 4


def test_no_figure_is_drawn_without_results(runs, tmp_path):
    results = runs.gathered("wang-figure3")
    assert plot(results) is None
    assert {path.suffix for path in analysis(results).write(tmp_path)} == {".md", ".csv"}


def test_csv_has_every_figure(runs, tmp_path):
    runs.score(TRANSFORMER, 30.0)
    runs.score(ENCODER, 31.0, against=TRANSFORMER, difference=1.0, p=0.25)
    results = runs.gathered("duan-table2")
    path = analysis(results).write(tmp_path)[1]
    lines = list(csv.DictReader(io.StringIO(path.read_text())))
    assert len(lines) == len(csv_lines(results)) == 4 * 2
    assert lines[2] == {
        **{"row": "encoder", "column": "BLEU", "of": "", "paper": "24.87", "mean": "31.0", "spread": "", "seeds": "1"},
        **{"difference": "1.0", "p": "0.2500", "missing": ""},
        **{"low": "", "high": "", "p_over_seeds": "", "detectable": ""},
        **{"error_over_seeds": "", "error_over_sentences": ""},
    }


def test_a_mean_is_over_the_test_sets_that_the_stand_in_has(workspace, tmp_path):
    runs = Runs(workspace, load_scale("smoke"), "toy-smoke")
    runs.score("continued+on-transformer", 30.0)
    results = runs.gathered("zheng-figure6")
    assert results.cells["Transformer, continued"][0][""].values == (30.0,)
    assert "toy (without test1, test2) stands for nist-zh-en" in markdown(results)
    assert len(analysis(results).write(tmp_path)) == 4
    table1 = runs.gathered("zheng-table1")
    cells = dict(zip((column.label for column in table1.table.columns), table1.cells["Transformer, continued"]))
    assert cells["MT05"][""].missing == "toy-smoke has no split test1"
    assert cells["Tests Avg."][""].values == (30.0,)


def test_quoted_rows_and_substituted_data_are_stated(runs):
    runs.score(TRANSFORMER, 30.0)
    text = markdown(runs.gathered("duan-table1"))
    assert "| Hassan et al. (2018), Transformer-Big | 24.20 |  |  |  |" in text
    assert "multi30k stands for wmt17-zh-en; tokenised BLEU (its tokens; `case:lc`)." in text


WRONG = [None, float("nan")]
PRINTED = {
    "size": ("duan-table2", TRANSFORMER, lambda figure: {"models": [{"parameters": figure, "embeddings": 1}]}),
    "lengths": ("zheng-figure5", GDR, lambda figure: {"rows": [{"words": "1", "bleu": figure, "length_ratio": 1.0}]}),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("source", PRINTED)
def test_a_wrong_figure_of_a_measurement_is_an_error_that_names_it(runs, source, wrong):
    """A seed is not left out of a mean in silence."""
    table, title, printed = PRINTED[source]
    for seed in (1, 2, 3):
        runs.measure(title, source, printed(wrong if seed == 2 else 1.0), seed)
    with pytest.raises(UserError, match=f"seed2/measures/{source}.json: damaged, .*; delete it, and give"):
        runs.gathered(table)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_score_is_an_error_that_names_it(runs, wrong):
    for seed in (1, 2, 3):
        runs.score(TRANSFORMER, wrong if seed == 2 else 30.0, seed)
    with pytest.raises(UserError, match=r"transformer/seed2/evaluation/test/scores.json: damaged, .*; delete it, and"):
        runs.gathered("duan-table2")


@pytest.mark.parametrize("part, wrong", [*(("difference", wrong) for wrong in WRONG), *(("p", it) for it in WRONG[1:])])
def test_a_wrong_comparison_is_an_error_that_names_it(runs, part, wrong):
    runs.score(TRANSFORMER, 30.0)
    runs.score(ENCODER, 31.0, against=TRANSFORMER, **{"difference": 1.0, "p": 0.5, part: wrong})
    with pytest.raises(UserError, match=r"compared/transformer/test.json: damaged, .*; delete it, and give"):
        runs.gathered("duan-table2")


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("place", ["theirs", "ours", "error"])
def test_a_wrong_comparison_of_seeds_is_an_error_that_names_it(runs, place, wrong):
    compare(runs, ENCODER, [30.0, 31.0], [30.9, 31.2], [wrong if place == "error" else 0.1])
    file = runs.root / ENCODER / "seeds1-2/compared/transformer/test.json"
    content = json.loads(file.read_text())
    if place != "error":
        content["scores"]["tokenised_bleu"][place == "ours"]["scores"][1] = wrong
    put(file, content)
    with pytest.raises(UserError, match=r"compared/transformer/test.json: damaged, .*; delete it, and give"):
        runs.gathered("duan-table2")


@pytest.mark.parametrize("content", ["", "[]", "{}"])
def test_an_empty_file_is_damaged_not_missing(runs, content):
    runs.score(TRANSFORMER, 30.0)
    runs.score(ENCODER, 31.0, against=TRANSFORMER, difference=1.0, p=0.5)
    put(runs.folder(ENCODER) / "compared/transformer/test.json", content)
    with pytest.raises(UserError, match="compared/transformer/test.json: damaged"):
        runs.gathered("duan-table2")
    put(runs.folder(TRANSFORMER) / "evaluation/test/scores.json", content)
    with pytest.raises(UserError, match="transformer/seed1/evaluation/test/scores.json: damaged"):
        runs.gathered("duan-table2")


def test_columns_of_different_numbers_of_seeds_are_named(runs):
    size = {"models": [{"parameters": 9, "embeddings": 1}]}
    for seed in (1, 2, 3):
        runs.score(TRANSFORMER, 30.0, seed)
        runs.score(ENCODER, 31.0, seed)
        runs.measure(DECODER, "size", size, seed)
    for title in (TRANSFORMER, ENCODER):
        runs.measure(title, "size", size, 2)
    text = markdown(runs.gathered("duan-table2"))
    legend = "over seeds; 3 (1 in parameters) for *Transformer*, *encoder*; 3 for *decoder*.\n"
    assert legend in text  # a column without a figure says why


def test_groups_of_different_numbers_of_seeds_are_named(runs):
    """A seed may lack the longest sentences."""
    for seed, words in ((1, ("≤ 10", "> 10")), (2, ("≤ 10",))):
        rows = [{"words": of_group, "bleu": 30.0 + seed, "length_ratio": 1.0} for of_group in words]
        runs.measure(TRANSFORMER, "lengths", {"rows": rows}, seed)
    text = markdown(runs.gathered("zheng-figure5"))
    columns = [column.label for column in load_table("zheng-figure5").columns]
    fewer = ", ".join(f"{column}, > 10 words" for column in columns)
    assert f"seeds; 2 (1 in {escaped(fewer)}) for *Transformer*.\n" in text


@pytest.mark.parametrize("part", ["label", "text", "signature"])
@pytest.mark.parametrize("title", [TRANSFORMER, ENCODER])
def test_scores_that_were_computed_in_another_way_are_refused(runs, part, title):
    """Seeds of one row, or rows of one column: neither a mean nor a difference of them has a meaning."""
    for seed in (1, 2, 3):
        runs.score(TRANSFORMER, 30.0, seed)
        runs.score(ENCODER, 31.0, seed)
    path = runs.folder(title, 3) / "evaluation/test/scores.json"
    scores = json.loads(path.read_text())
    scores["scores"]["tokenised_bleu"][part] = "another"
    put(path, scores)
    with pytest.raises(
        UserError, match=rf"{title.replace('+', '.')}/seed3/.*scores.json: .*another.*, but .*delete one: then"
    ):
        runs.gathered("duan-table2")


def test_labels_are_escaped(runs):
    runs.score(ENCODER, 31.0)
    path = runs.folder(ENCODER) / "evaluation/test/scores.json"
    hostile = {"score": 30.0, "label": "<script>", "text": "a\n# b", "signature": "` <b>"}
    path.write_text(json.dumps({"scores": {"tokenised_bleu": hostile}}))
    page = markdown(runs.gathered("duan-table2"))
    assert "&lt;script" in page and "<script" not in page and "\n# b" not in page and "` <b>`" in page
