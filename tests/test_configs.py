"""Every configuration in configs/ builds its model: systems and the config groups that they use."""

import re
from argparse import Namespace
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest
import torch
import yaml
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY, build_model
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from fairseq_capsule.options import interpretations
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationTask
from tests.zoo import make_task

CONFIGS = Path(__file__).parent.parent / "configs"
PAPERS = {"wmt14-en-de", "wmt14-en-fr", "wmt16-en-ro", "wmt17-zh-en", "nist-zh-en", "lcsts"}
CORPORA = {"toy", "multi30k", "iwslt14-de-en", "ja-en", "headlines", *PAPERS}
WHOLE = [path for name in ("own", "papers") for path in sorted((CONFIGS / name).glob("*.yaml"))]  # without groups
SYSTEMS = WHOLE + sorted(
    path for name in CORPORA for path in (CONFIGS / name).glob("*.yaml") if "\ndefaults:" in path.read_text()
)
# The paper of each system.
OF_PAPERS = {
    "capsule_transformer": "duan",
    "gdr_transformer": "zheng",
    "gret_transformer": "weng",
    "capsnmt": "wang",
}
PRINTED = re.compile(r"  (\w+): (\S+)  # (?:§[\d.]+|Eq\. [\d-]+|Figure \d+)")
GROUPS = sorted(path for name in CORPORA for path in (CONFIGS / name).glob("*/*.yaml"))


@cache
def composed(folder, name, *overrides):
    with initialize_config_dir(str(folder), version_base="1.1"):
        return compose(name, overrides, return_hydra_config=True)


def built(config):
    """Build the model without parameter values, so that a Big model takes no time."""
    model = OmegaConf.create(OmegaConf.to_container(config.model, resolve=True))
    with torch.device("meta"):
        return build_model(model, make_task())


def width(config):
    return config.model.get("encoder_embed_dim", 512 if config.model._name.endswith("_base") else 128)


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_configuration_builds_its_model(path):
    config = composed(path.parent, path.stem)
    assert built(config).encoder.embed_tokens.embedding_dim == width(config)
    assert config.task._name in TASK_REGISTRY and config.criterion._name in CRITERION_REGISTRY
    assert set(config.task) <= {item.name for item in fields(TASK_DATACLASS_REGISTRY[config.task._name])}
    # The sum with the losses of mechanisms falls while the translations get worse, and a baseline has no such sum.
    by_criterion = {"bag_of_words_probe": "loss"}.get(config.criterion._name, "nll_loss")
    assert config.checkpoint.best_checkpoint_metric == ("rougeL" if config.task.get("eval_rouge") else by_criterion)
    # It forms batches of any size. The tasks of fairseq leave out sentences.
    assert issubclass(TASK_REGISTRY[config.task._name], CapsuleTranslationTask)
    assert config.hydra.job.chdir is False
    assert config.optimization.get("max_update") or config.optimization.get("max_epoch")
    # fairseq fills in its defaults where `_self_` stands: after `corpus` they would replace the values of that file.
    assert "\ndefaults:" not in path.read_text() or "\ndefaults:\n  - _self_\n" in path.read_text()
    assert f"configs/{path.parent.name} --config-name {path.stem} " in path.read_text()


@pytest.mark.parametrize("path", GROUPS, ids=lambda path: f"{path.parts[-3]}/{path.parent.name}={path.stem}")
def test_every_config_group_fits_its_systems(path):
    """A `recipe` fits every system that uses recipes; a `size` those whose model has all its options."""
    folder, group = path.parent.parent, path.parent.name
    systems = [system.stem for system in folder.glob("*.yaml") if f"  - {group}: " in system.read_text()]
    if group == "recipe":
        assert systems and all(built(composed(folder, system, f"recipe={path.stem}")) for system in systems)
        return
    options = OmegaConf.load(path).model
    fitting = [
        system
        for system in systems
        if set(options)
        <= {item.name for item in fields(MODEL_DATACLASS_REGISTRY[composed(folder, system).model._name])}
    ]
    assert fitting, "the model of no system has all these options"
    for system in fitting:
        model = built(composed(folder, system, f"size={path.stem}"))
        assert model.encoder.embed_tokens.embedding_dim == options.encoder_embed_dim


def test_the_transformer_of_iwslt14_is_that_of_fairseqs_readme():
    args = Namespace(share_decoder_input_output_embed=True)
    ARCH_CONFIG_REGISTRY["transformer_iwslt_de_en"](args)
    with torch.device("meta"):
        expected = ARCH_MODEL_REGISTRY["transformer_iwslt_de_en"].build_model(args, make_task())
    model = built(composed(CONFIGS / "iwslt14-de-en", "transformer"))
    shapes, of_fairseq = ({name: value.shape for name, value in m.state_dict().items()} for m in (model, expected))
    assert shapes == of_fairseq
    assert model.encoder.layers[0].self_attn.num_heads == expected.encoder.layers[0].self_attn.num_heads
    assert model.decoder.layers[0].encoder_attn.num_heads == expected.decoder.layers[0].encoder_attn.num_heads


def test_configurations_of_the_user_are_whole_and_short():
    for path in (CONFIGS / "own").glob("*.yaml"):
        text = path.read_text()
        assert "defaults:" not in text and len(text.splitlines()) <= 45, path
        config = composed(path.parent, path.stem)
        assert {config.task.source_lang, config.task.target_lang} == {None}  # so that train.sh knows these settings
        separate = built(composed(path.parent, path.stem, "model.share_all_embeddings=false"))
        assert separate.encoder.embed_tokens is not separate.decoder.embed_tokens
        for size, expected in {"base": 512, "big": 1024}.items():
            if config.model._name.endswith("_tiny"):
                name = config.model._name.replace("tiny", size)
                model = built(composed(path.parent, path.stem, f"model._name={name}"))
                assert model.encoder.embed_tokens.embedding_dim == expected


def printed_by_the_files():
    """(paper, setting) → value, for the values of configs/papers that a comment finds in the paper."""
    printed = {}
    for path in (CONFIGS / "papers").glob("*.yaml"):
        group = ""
        for line in path.read_text().splitlines():
            group = line.rstrip(":") if re.fullmatch(r"\w+:", line) else group
            if group in ("task", "common", "hydra") or not re.match("  (?!_name|save_dir)", line):
                continue
            match = PRINTED.match(line)
            assert match or "  # not printed: " in line or path.stem == "wang_preprint", f"{path}: {line}"
            if match:
                printed[path.stem, f"{group}.{match[1]}"] = match[2]
    return printed


@pytest.mark.parametrize("path", [path for path in SYSTEMS if path.parent.name in PAPERS and path.stem in OF_PAPERS])
def test_the_systems_of_a_paper_have_its_printed_values_or_say_why_not(path):
    """What a paper prints stands in configs/papers; a comment on the line of another value names the section."""
    config, paper = composed(path.parent, path.stem), OF_PAPERS[path.stem]
    model = built(config).cfg  # with the values of its architecture
    checked = 0
    for (of_paper, setting), value in printed_by_the_files().items():
        group, name = setting.split(".")
        if of_paper == paper and group != "generation":
            checked += 1
            commented = re.search(rf"^  {name}: .*# .*§", path.read_text(), re.MULTILINE)
            ours = getattr(model, name) if group == "model" else OmegaConf.select(config, setting)
            assert ours == yaml.safe_load(value) or commented, f"{path}: {setting} is not {value}"
    assert checked > 5


def test_what_corpora_share_is_equal():
    """Each corpus has its own copy, because `--config-dir` names one folder. English-French has another dropout."""
    for folders in (PAPERS, {"toy", "multi30k"}):
        contents = {}
        for path in (path for folder in folders for path in (CONFIGS / folder).glob("**/*.yaml")):
            if path.parent.name in ("recipe", "size") or path.stem == "on_baseline":
                contents.setdefault(path.name, set()).add(re.sub(r"  dropout: .*\n", "", path.read_text()))
        assert contents and all(len(texts) == 1 for texts in contents.values())


@pytest.mark.parametrize(
    "path", [path for path in SYSTEMS if path.stem in ("capsnmt", "wang")], ids=lambda path: path.parent.name
)
def test_gradients_of_capsnmt_are_clipped(path):
    assert composed(path.parent, path.stem).optimization.clip_norm == 1


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_configuration_names_its_interpretation(path):
    """So that a run folder of another interpretation refuses to continue: a training takes its options from here."""
    config = composed(path.parent, path.stem)
    assert interpretations(built(config).cfg).keys() <= config.model.keys()


def test_every_folder_is_known():
    assert {path.name for path in CONFIGS.iterdir() if path.is_dir()} == {*CORPORA, "own", "papers", "scales", "tables"}
