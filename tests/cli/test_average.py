"""`fairseq-capsule average`: the choice of checkpoints, their mean, and what is refused."""

import re
import shutil
from argparse import Namespace
from collections import OrderedDict
from dataclasses import fields

import pytest
import torch
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.models import MODEL_DATACLASS_REGISTRY

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.averaging import average_checkpoints
from fairseq_capsule.mechanisms.registry import routing_options
from fairseq_capsule_lab.runs.checkpoints import best_checkpoints, last_checkpoints
from tests.zoo import SYSTEMS


def write(path, parameters=None, score=None, higher_is_better=False, options=(), words="a", target="de", **extra_state):
    """Write a checkpoint with the parts that fairseq's trainer saves."""
    parameters = OrderedDict(w=torch.ones(2)) if parameters is None else OrderedDict(parameters)
    checkpoint = {
        "args": None,
        "cfg": {
            "checkpoint": {"maximize_best_checkpoint_metric": higher_is_better},
            "model": Namespace(**{"_name": "transformer", "encoder_layers": 3, **dict(options)}),
            "task": {"data": "gone", "source_lang": "en", "target_lang": target},
        },
        "model": parameters,
        "criterion": None,
        "optimizer_history": [{"optimizer_name": "FairseqAdam", "lr_scheduler_state": {}, "num_updates": 7}],
        "task_state": {"dictionary_digests": {"source": words, "target": words}} if words else {},
        "extra_state": {"train_iterator": {"epoch": 2}, "val_loss": score, "best": score, **extra_state},
        "last_optimizer_state": {"state": {0: torch.ones(1000)}},
    }
    torch.save(checkpoint, path)
    return path


def routing_of(arch):
    return routing_options(MODEL_DATACLASS_REGISTRY[arch]())


def names(paths):
    return [path.name for path in paths]


@pytest.fixture
def run_dir(tmp_path):
    """A run folder with checkpoints of epochs 1 to 11, checkpoints of updates, and other files."""
    for epoch in range(1, 12):
        write(tmp_path / f"checkpoint{epoch}.pt", {"w": torch.full((2,), float(epoch))}, score=abs(epoch - 6.1))
        write(tmp_path / f"checkpoint_{epoch}_{epoch * 90}.pt", {"w": torch.full((2,), 100.0 * epoch)}, score=epoch)
    for name in ("checkpoint_best.pt", "checkpoint_last.pt", "checkpoint3.pt.part", "checkpoint12.pt.bak"):
        write(tmp_path / name)
    return tmp_path


def test_the_last_checkpoints_are_sorted_by_epoch_not_by_name(run_dir):
    assert names(last_checkpoints(run_dir, 3)) == ["checkpoint9.pt", "checkpoint10.pt", "checkpoint11.pt"]
    assert names(last_checkpoints(run_dir, 2, updates=True)) == ["checkpoint_10_900.pt", "checkpoint_11_990.pt"]


def test_the_best_checkpoints_have_the_best_recorded_score(run_dir):
    assert names(best_checkpoints(run_dir, 3)) == ["checkpoint6.pt", "checkpoint7.pt", "checkpoint5.pt"]
    assert names(best_checkpoints(run_dir, 1, updates=True)) == ["checkpoint_1_90.pt"]


def test_the_highest_score_may_be_best_and_a_score_may_be_missing(tmp_path):
    for epoch, bleu in [(1, 20.0), (2, None), (3, 31.0), (4, 25.0)]:
        write(tmp_path / f"checkpoint{epoch}.pt", score=bleu, higher_is_better=True)
    assert names(best_checkpoints(tmp_path, 2)) == ["checkpoint3.pt", "checkpoint4.pt"]
    with pytest.raises(UserError, match="with a validation score: 3 found, but 4 requested"):
        best_checkpoints(tmp_path, 4)


@pytest.mark.parametrize(
    "higher_is_better, expected",
    [
        (False, ["checkpoint.best_loss_9.871.pt", "checkpoint.best_loss_10.252.pt"]),
        (True, ["checkpoint.best_loss_11.000.pt", "checkpoint.best_loss_10.252.pt"]),
    ],
)
def test_the_best_checkpoints_have_the_best_score_in_their_name(run_dir, higher_is_better, expected):
    for value in ("9.871", "10.252", "11.000"):
        write(run_dir / f"checkpoint.best_loss_{value}.pt", higher_is_better=higher_is_better)
    assert names(best_checkpoints(run_dir, 2)) == expected


def test_best_checkpoints_by_two_metrics_are_refused(tmp_path):
    write(tmp_path / "checkpoint.best_bleu_30.100.pt")
    write(tmp_path / "checkpoint.best_label_loss_3.100.pt")
    with pytest.raises(UserError, match="best checkpoints by bleu and label_loss"):
        best_checkpoints(tmp_path, 1)


def test_the_mean_keeps_the_type_of_each_tensor(tmp_path):
    generator = torch.Generator().manual_seed(0)
    states = [
        {
            "full": torch.randn(3, 4, generator=generator),
            "half": torch.randn(5, generator=generator).half(),
            "bfloat": torch.randn(5, generator=generator).bfloat16(),
            "norm.num_batches_tracked": torch.tensor(number),
            "means.initted": torch.tensor([number == 2, True]),
        }
        for number in range(3)
    ]
    paths = [write(tmp_path / f"{number}.pt", state) for number, state in enumerate(states)]
    mean = average_checkpoints(paths, routing_options)["model"]
    for name in ("full", "half", "bfloat"):
        expected = torch.stack([state[name].double() for state in states]).mean(0).to(states[0][name].dtype)
        assert mean[name].dtype == states[0][name].dtype
        torch.testing.assert_close(mean[name], expected, rtol=0, atol=0)
    assert list(mean) == list(states[0])
    assert mean["norm.num_batches_tracked"] == 2
    assert mean["means.initted"].tolist() == [True, True]


def test_half_precision_is_summed_in_higher_precision(command, tmp_path):
    paths = [write(tmp_path / f"{i}.pt", {"w": torch.tensor([60000.0, float(i)]).half()}) for i in (1, 2, 6)]
    assert command("average", *paths, "--output", tmp_path / "mean.pt").status == 0
    mean = load_checkpoint_to_cpu(str(tmp_path / "mean.pt"))["model"]["w"]
    assert mean.tolist() == [60000.0, 3.0]  # two exceed float16


@pytest.mark.parametrize("stored", ["once", "twice"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_tied_embeddings_are_one_tensor_and_stored_once(command, tmp_path, stored, dtype):
    generator = torch.Generator().manual_seed(1)
    matrices = [torch.randint(-99, 99, (100, 50), generator=generator).to(dtype) for _ in range(2)]
    for epoch, matrix in enumerate(matrices, start=1):
        twin = matrix if stored == "once" else matrix.clone()  # "once" is how a CPU saves it, "twice" how a GPU does
        other = matrix.flip(0)  # of the same sum, but not tied
        write(tmp_path / f"checkpoint{epoch}.pt", {"in": matrix, "out": twin, "other": other})
    output = tmp_path / "mean.pt"
    assert command("average", tmp_path, "--last", 2, "--output", output).status == 0
    mean = load_checkpoint_to_cpu(str(output))["model"]
    torch.testing.assert_close(mean["in"], (sum(matrix.double() for matrix in matrices) / 2).to(dtype), rtol=0, atol=0)
    assert mean["in"].data_ptr() == mean["out"].data_ptr() != mean["other"].data_ptr()
    assert output.stat().st_size < 2 * matrix.nbytes + 5000


def test_the_checkpoint_keeps_config_and_history(command, run_dir):
    write(run_dir / "checkpoint11.pt", {"w": torch.full((2,), 11.0)}, score=1.0, ema={"w": torch.zeros(2)}, best=0.5)
    result = command("average", run_dir, "--last", 2)
    output = run_dir / "checkpoint_avg_last2.pt"
    assert (result.status, result.out) == (0, f"wrote {output}: the average of checkpoint10.pt, checkpoint11.pt\n")
    checkpoint = load_checkpoint_to_cpu(str(output))
    assert checkpoint["model"]["w"].tolist() == [10.5, 10.5]
    assert checkpoint["cfg"].model.encoder_layers == 3
    assert checkpoint["last_optimizer_state"] is None
    assert checkpoint["optimizer_history"][0]["num_updates"] == 7
    assert checkpoint["extra_state"] == {
        "train_iterator": {"epoch": 2},
        "best": 0.5,
        "val_loss": None,
        "averaged": ["checkpoint10.pt", "checkpoint11.pt"],
    }


def test_the_average_of_a_copied_run_is_the_same_file(command, run_dir, tmp_path_factory):
    """evaluate.sh refuses to continue with another file."""
    copy = shutil.copytree(run_dir, tmp_path_factory.mktemp("elsewhere") / "copy")
    for folder in (run_dir, copy):
        assert command("average", folder, "--last", 2).status == 0
    first, second = ((folder / "checkpoint_avg_last2.pt").read_bytes() for folder in (run_dir, copy))
    assert first == second


def test_the_best_checkpoints_of_a_real_training_are_found(training):
    best = best_checkpoints(training / "run", 2)
    assert all(re.fullmatch(r"checkpoint\.best_loss_\d+\.\d{4}\.pt", path.name) for path in best)
    recorded = [load_checkpoint_to_cpu(str(path))["extra_state"]["val_loss"] for path in best]
    assert recorded == sorted(recorded)


def test_what_cannot_be_chosen_is_refused(refused, run_dir):
    assert "11 found, but 20 requested" in refused("average", run_dir, "--last", 20)
    first = run_dir / "checkpoint1.pt"
    line = refused("average", first, "--updates", "--output", run_dir / "mean.pt")
    assert "--updates chooses from a folder" in line
    assert "give only that folder" in refused("average", run_dir, first, "--last", 1)


@pytest.mark.parametrize("content", ["cut", "nothing", "parameters only"])
def test_a_file_that_is_not_a_checkpoint_is_refused_and_an_older_average_kept(refused, run_dir, content):
    broken = run_dir / "checkpoint11.pt"
    older = write(run_dir / "checkpoint_avg_last2.pt").read_bytes()
    before = sorted(run_dir.iterdir())
    if content == "parameters only":
        torch.save({"w": torch.ones(2)}, broken)
    else:
        broken.write_bytes(broken.read_bytes()[:-300] if content == "cut" else b"")
    assert refused("average", run_dir, "--last", 2).startswith(f"{broken}: ")
    assert (run_dir / "checkpoint_avg_last2.pt").read_bytes() == older and sorted(run_dir.iterdir()) == before


@pytest.mark.parametrize(
    "parameters, problem",
    [
        ({"w": torch.ones(3)}, "parameter w is of shape [3], in {} it is of shape [2]"),
        ({"v": torch.ones(2)}, "parameter w is missing, in {} it is of shape [2]"),
        ({"w": torch.ones(2), "v": torch.ones(2)}, "parameter v is of shape [2], in {} it is missing"),
        ({"w": torch.tensor([1.0, float("nan")])}, "parameter w is not finite"),
        ({}, "its model has no parameters"),
    ],
)
def test_parameters_that_have_no_mean_are_refused(refused, run_dir, parameters, problem):
    write(run_dir / "checkpoint11.pt", parameters)
    line = refused("average", run_dir, "--last", 2)
    assert line.startswith(f"{run_dir / 'checkpoint11.pt'}: {problem.format(run_dir / 'checkpoint10.pt')}")
    assert not (run_dir / "checkpoint_avg_last2.pt").exists()


@pytest.mark.parametrize("arch", [name for name in SYSTEMS if routing_of(name)])
def test_options_that_shapes_do_not_show_are_refused(tmp_path, arch):
    """Models of equal parameters: other heads, iterations, mechanisms or forms of a routing."""
    config = MODEL_DATACLASS_REGISTRY[arch]()
    options = {item.name: getattr(config, item.name) for item in fields(config)}
    first = write(tmp_path / "first.pt", options=options)
    names = {*routing_of(arch), "encoder_attention_heads", "encoder_normalize_before"} & options.keys()
    for name in (name for name in names if options[name] is not None):  # None: a size, which shapes show
        second = write(tmp_path / "second.pt", options={**options, name: "another"})
        with pytest.raises(UserError, match=f"second.pt: its {name} is 'another', in {first} it is .*of one model"):
            average_checkpoints([first, second], routing_options)
    write(second, options={**options, "dropout": 0.7})  # computes the same
    assert average_checkpoints([first, second], routing_options)


@pytest.mark.parametrize(
    "other, problem",
    [
        ({"words": "b"}, "it was trained with other words than those of the source dictionary of {}"),
        ({"target": "fr"}, "it translates en-fr, but {} is en-de"),
    ],
)
def test_runs_of_other_words_or_another_direction_have_no_average(refused, tmp_path, other, problem):
    first, second = write(tmp_path / "first.pt"), write(tmp_path / "second.pt", **other)
    line = refused("average", first, second, "--output", tmp_path / "mean.pt")
    assert line.startswith(f"{second}: {problem.format(first)}") and not (tmp_path / "mean.pt").exists()


def test_what_is_not_known_is_not_compared_and_a_line_says_so(command, tmp_path):
    first, second = write(tmp_path / "first.pt"), write(tmp_path / "second.pt", words="")
    result = command("average", first, second, "--output", tmp_path / "mean.pt")
    assert result.status == 0
    (line,) = result.err.splitlines()
    assert line.startswith(f"{second}: words not compared with those of {first}: ")
