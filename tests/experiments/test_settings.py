"""The settings of every table's runs at the scale of the papers."""

from pathlib import Path

import pytest
import yaml

from experiments.tables.definitions import CONFIGS, load_table, table_names
from experiments.tables.runs import TableRuns, Workspace, composed_of
from experiments.tables.scales import load_scale
from fairseq_capsule.options import interpretations

PAPER = load_scale("paper")
WORKSPACE = Workspace(Path("/runs"), Path("/data"))
COMPARISONS = [name for name in table_names() if load_table(name).paper.startswith(("comparison", "ablation"))]
LSTMS = ("lstm", "gdr_lstm")

PARTS = {"duan": None, "weng": "nc,cwmt"}  # of WMT17 Chinese-English
STARTS = {  # the configuration that a configuration is fine-tuned from
    "combined": {"transformer"},
    "continued": {"transformer", "selective_transformer"},
    "gdr_lstm": {"lstm"},
    "gdr_transformer": {"transformer", "selective_transformer"},
    "gret_transformer": {"transformer"},
    "probe": {"gret_transformer", "transformer"},
}

each_table = pytest.mark.parametrize("name", table_names())
each_table_of_a_paper = pytest.mark.parametrize("name", [name for name in table_names() if name not in COMPARISONS])


def runs_of(name):
    """Return every run of a table, with those that it needs."""
    table = load_table(name)
    runs = [
        TableRuns(table, PAPER, WORKSPACE).run(row, column, 1) for row in table.to_run() for column in table.columns
    ]
    return list(dict.fromkeys(needed for run in runs for needed in run.with_needed()))


def value(words, option):
    return words[words.index(option) + 1] if option in words else None


def is_big(run):
    return any(word.startswith("size=big") for word in run.overrides)


@each_table_of_a_paper
def test_learning_rates_from_scratch_follow_vaswani(name):
    """Their peak is width^-0.5 × warm-up^-0.5. A fine-tuning has one rate for all sizes."""
    for run in runs_of(name):
        config = composed_of(run)
        rate = (config.model.get("encoder_embed_dim", 512) * config.lr_scheduler.warmup_updates) ** -0.5
        if run.baseline:
            rate = 0.0007 if run.setup.configs == "lcsts" else 0.0005
        assert config.optimization.lr == [pytest.approx(rate, rel=0.01)], run.title


@each_table
def test_gradients_are_clipped_on_nist_and_in_lstms(name):
    for run in runs_of(name):
        clipped = run.setup.configs == "nist-zh-en" or run.config in (*LSTMS, "capsnmt")
        clipped = clipped and "optimization.clip_norm=0" not in run.overrides  # a row with an older interpretation
        assert composed_of(run).optimization.get("clip_norm", 0) == clipped, run.title


@each_table_of_a_paper
def test_dropout_is_that_of_the_papers(name):
    """The Transformers have Vaswani et al.'s, also those of CapsNMT's tables."""
    for run in runs_of(name):
        if run.config in LSTMS:
            dropout = 0.5
        elif run.setup.configs == "wmt14-en-fr":
            dropout = 0.1
        else:
            dropout = 0.3 if run.config == "capsnmt" or is_big(run) else 0.1
        assert composed_of(run).model.dropout == dropout, run.title


@pytest.mark.parametrize("name", [name for name in table_names() if name != "interpretations"])
def test_the_label_of_a_row_says_an_older_reading(name):
    """The table of the interpretations names all of them in its labels."""
    table = load_table(name)
    for row in table.to_run():
        config = composed_of(TableRuns(table, PAPER, WORKSPACE).run(row, table.columns[0], 1))
        of_model = interpretations(config.model)
        assert (of_model.get("decoder_norms") == "after") == ("norm after" in row.label), row.label
        assert (of_model.get("guided_reduction") == "sum") == (", sum" in row.label), row.label
        if "decoder_norms" in of_model:
            assert config.optimization.clip_norm == ("norm after" not in row.label), row.label


@each_table
def test_beam_and_length_penalty_are_those_of_the_paper(name):
    expected = "5", None
    if name not in COMPARISONS:
        paper = yaml.safe_load((CONFIGS / f"papers/{load_table(name).paper}.yaml").read_text())["generation"]
        expected = str(paper["beam"]), str(paper["lenpen"])
    for run in runs_of(name):
        decode = run.setup.decode
        assert (value(decode, "--beam"), value(decode, "--lenpen")) == expected, run.title
        assert ("--lowercase" in decode) == (run.setup.configs in ("nist-zh-en", "multi30k", "ja-en"))


@each_table_of_a_paper
def test_parts_of_the_chinese_english_corpus(name):
    for run in runs_of(name):
        expected = PARTS[load_table(name).paper] if run.setup.configs == "wmt17-zh-en" else None
        assert value(run.setup.prepare, "--parts") == expected, run.title


def test_each_preparation_has_a_data_folder_of_its_own():
    pairs = {(run.setup.data, run.setup.prepare) for name in table_names() for run in runs_of(name)}
    folders, preparations = map(set, zip(*pairs))
    assert len(folders) == len(preparations) == len(pairs)


@each_table
def test_fine_tunings_start_from_a_baseline_of_their_size(name):
    for run in runs_of(name):
        starts = STARTS.get(run.config, {None})
        assert (run.baseline.config if run.baseline else None) in starts, run.title
        assert run.baseline is None or is_big(run.baseline) == is_big(run), run.title


def test_the_probe_reads_the_encoders_of_gret_and_of_its_baseline():
    probes = [run for run in runs_of("weng-table5") if run.config == "probe"]
    read = {(run.baseline.config, composed_of(run).criterion.probe_reads) for run in probes}
    baselines = {(encoder, reads) for encoder in ("gret_transformer", "transformer") for reads in ("last", "mean")}
    assert read == baselines | {("gret_transformer", "global")}
    for run in probes:
        has_gret = composed_of(run).model.global_representation == "capsule"
        assert has_gret == (run.baseline.config == "gret_transformer")
