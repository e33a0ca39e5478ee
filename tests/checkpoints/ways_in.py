"""Every entry point for a checkpoint, run in this process on a small generated model and data."""

import copy
from unittest import mock

import torch
from fairseq import checkpoint_utils, options, utils
from fairseq.data import indexed_dataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models.ema import build_ema
from fairseq.tasks import setup_task
from fairseq.trainer import Trainer
from fairseq_cli import generate, interactive, validate
from omegaconf import OmegaConf, open_dict

from fairseq_capsule import hub
from fairseq_capsule.checkpoints.baseline import init_from_baseline
from fairseq_capsule.checkpoints.loading import read_checkpoint
from fairseq_capsule.models.base import changed_parameters
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
from fairseq_capsule_lab import cli
from fairseq_capsule_lab.runs.teacher import check_teacher
from tests.integration.commands import SMALL
from tests.zoo import make_sentences, make_task

ARCH = "capsule_transformer_tiny"
TASK = ["--task", "capsule_translation", "-s", "en", "-t", "de"]
SETTINGS = ["--cpu", "--num-workers", "0", "--max-tokens", "100"]
SHORT = ["--max-source-positions", "12", "--max-target-positions", "12"]  # an untrained model does not stop


class Place:
    """A folder with binarised data, the state of a small trained model, and the entry points."""

    def __init__(self, folder):
        self.folder, self.data, self.configs = folder, folder / "bin", {}
        self.data.mkdir()
        self._write_data()
        arguments = ["--arch", ARCH, *SMALL, *SHORT, "--optimizer", "adam", "--lr", "0.1", "--save-dir", folder / "run"]
        parser = options.get_training_parser()
        self.args = options.parse_args_and_arch(parser, [str(self.data), *TASK, *SETTINGS, *map(str, arguments)])
        cfg = convert_namespace_to_omegaconf(self.args)
        self.task = setup_task(cfg.task)
        model = self.task.build_model(cfg.model)
        self.trainer = Trainer(cfg, self.task, model, self.task.build_criterion(cfg.criterion))
        self.cfg = cfg
        epochs = self.trainer.get_train_iterator(1)
        self.trainer.train_step([next(epochs.next_epoch_itr())])
        self.trainer.consolidate_optimizer()
        state = self.trainer.state_dict()
        state["extra_state"].update(train_iterator=epochs.state_dict(), val_loss=1.0, ema=state["model"])
        self._state = utils.move_to_cpu(state)
        self.good = self.write("good.pt", self.state())

    def _write_data(self):
        dictionary = make_task().source_dictionary
        for language in ("en", "de"):
            dictionary.save(str(self.data / f"dict.{language}.txt"))
        for split in ("train", "valid", "test"):
            sentences = make_sentences([(5, 4), (3, 6), (7, 2)] * 3)
            for language, side in (("en", "source"), ("de", "target")):
                prefix = str(self.data / f"{split}.en-de.{language}")
                builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", len(dictionary))
                for sentence in sentences:
                    builder.add_item(sentence[side])
                builder.finalize(f"{prefix}.idx")

    def state(self):
        """The state that the trainer saves."""
        return copy.deepcopy(self._state)

    def write(self, name, state):
        torch.save(state, self.folder / name)
        return self.folder / name

    # Each entry point takes a checkpoint, and returns or raises the error that stops it.

    def command(self, *arguments):
        parsed = cli.build_parser(arguments[0]).parse_args([str(argument) for argument in arguments])
        parsed.run(parsed)

    def size(self, checkpoint):
        self.command("size", checkpoint, "--data", self.data)

    def probe(self, checkpoint):
        self.command("probe", checkpoint, "--data", self.data)

    def picture(self, checkpoint):
        self.command("picture", checkpoint, self.data, "--text", "w1 w2", "--out", self.folder / "picture.svg")

    def inspect(self, checkpoint):
        self.command("inspect", checkpoint, self.data, "--ids", "0", "--beam", "1", "--out", self.folder / "out")

    def against(self, checkpoint):
        self.command(
            *("inspect", self.good, self.data, "--ids", "0", "--beam", "1"),
            *("--against", checkpoint, "--out", self.folder / "out"),
        )

    def average(self, checkpoint):
        self.command("average", checkpoint, self.good, "--output", self.folder / "average.pt")

    def average_best(self, checkpoint):
        run = self.folder / "best"
        run.mkdir(exist_ok=True)
        (run / "checkpoint1.pt").unlink(missing_ok=True)
        (run / "checkpoint1.pt").symlink_to(checkpoint)
        self.command("average", run, "--best", "1", "--output", self.folder / "average.pt")

    def iterations(self, checkpoint):
        options = ["--data", self.data, "--iterations", "1", "--out", self.folder / "iterations"]
        self.command("analyze", "iterations", checkpoint, *options)

    def overlap(self, checkpoint):
        self.command("analyze", "overlap", checkpoint, "--data", self.data, "--out", self.folder / "overlap")

    def hub_load(self, checkpoint):
        hub.load(checkpoint, self.data).translate("w1 w2", beam=1, max_len_b=2)

    def from_pretrained(self, checkpoint):
        CapsuleTransformerModel.from_pretrained(str(checkpoint.parent), checkpoint.name, str(self.data))

    def _config(self, get_parser, checkpoint):
        if get_parser not in self.configs:
            self.configs[get_parser] = self._parsed(get_parser)
        cfg = copy.deepcopy(self.configs[get_parser])
        cfg.common_eval.path = str(checkpoint)
        return cfg

    def _parsed(self, get_parser):
        arguments = [self.data, *TASK, "--path", "…", *SETTINGS]
        if get_parser is not options.get_validation_parser:
            arguments += ["--beam", "1", "--max-len-b", "2"]
        args = options.parse_args_and_arch(get_parser(), [str(argument) for argument in arguments])
        return convert_namespace_to_omegaconf(args)

    def generate(self, checkpoint):
        generate.main(self._config(options.get_generation_parser, checkpoint))

    def generate_ensemble(self, checkpoint):
        self.generate(f"{self.good}:{checkpoint}")

    def interactive(self, checkpoint):
        with mock.patch.object(interactive, "buffered_read", return_value=[["w1 w2"]]):
            interactive.main(self._config(options.get_interactive_generation_parser, checkpoint))

    def validate(self, checkpoint):
        validate.main(self._config(options.get_validation_parser, checkpoint))

    def _resume(self, **settings):
        cfg = copy.deepcopy(self.cfg.checkpoint)
        with open_dict(cfg):
            OmegaConf.resolve(cfg)
            cfg.update(settings)
        checkpoint_utils.load_checkpoint(cfg, self.trainer)

    def restore_file(self, checkpoint):
        self._resume(restore_file=str(checkpoint))

    def finetune_from_model(self, checkpoint):
        self._resume(finetune_from_model=str(checkpoint))

    def ema_seed_model(self, checkpoint):
        cfg = copy.deepcopy(self.cfg.ema)
        cfg.ema_seed_model = str(checkpoint)
        build_ema(self.trainer.model, cfg, "cpu")

    def resume(self, checkpoint):
        run = self.folder / "resumed"
        run.mkdir(exist_ok=True)
        (run / "checkpoint_last.pt").unlink(missing_ok=True)
        (run / "checkpoint_last.pt").symlink_to(checkpoint)
        self._resume(save_dir=str(run))

    def baseline(self, checkpoint):
        dictionary = self.task.source_dictionary
        init_from_baseline(
            *(self.trainer.model, str(checkpoint), read_checkpoint(checkpoint), dictionary, dictionary),
            *changed_parameters(self.trainer.model),
        )

    def pretrained_component(self, checkpoint):
        checkpoint_utils.load_pretrained_component_from_model(self.trainer.model.encoder, str(checkpoint))

    def teacher(self, checkpoint):
        check_teacher(str(checkpoint), str(self.data))


WAYS = [name for name in vars(Place) if not name.startswith("_") and name not in ("state", "write", "command")]
