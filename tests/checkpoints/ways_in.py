"""Ways to load a checkpoint, each run in this process on a small generated model and data."""

import copy
import functools

import torch
from fairseq import checkpoint_utils, options, utils
from fairseq.data import indexed_dataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import setup_task
from fairseq.trainer import Trainer
from fairseq_cli import generate, interactive, validate
from omegaconf import OmegaConf, open_dict

from fairseq_capsule import hub
from fairseq_capsule.models.capsule_transformer import CapsuleTransformerModel
from fairseq_capsule.root_logger import unchanged_root_logger
from fairseq_capsule_lab import cli
from tests.integration.commands import SMALL
from tests.zoo import make_sentences, make_task

ARCH = "capsule_transformer_tiny"
TASK = ["--task", "capsule_translation", "-s", "en", "-t", "de"]
SETTINGS = ["--cpu", "--num-workers", "0", "--max-tokens", "100"]
SHORT = ["--max-source-positions", "12", "--max-target-positions", "12"]  # an untrained model does not stop


@functools.cache
def generation(task):
    """Return the options of fairseq-generate, but for the data and the checkpoint."""
    words = ["…", "--task", task, *TASK[2:], "--path", "…", *SETTINGS, "--beam", "1", "--max-len-b", "2"]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_generation_parser(), words))


class Place:
    """A folder with binarised data, the state of a small trained model, and the ways to load a checkpoint."""

    def __init__(self, folder):
        self.folder, self.data = folder, folder / "bin"
        self.data.mkdir()
        self._write_data()
        arguments = ["--arch", ARCH, *SMALL, *SHORT, "--optimizer", "adam", "--lr", "0.1", "--save-dir", folder / "run"]
        # fairseq evaluates it on the command line, and stores it under the options of the model too.
        arguments += ["--adam-betas", "(0.9, float(1-0.02))"]
        parser = options.get_training_parser()
        self.args = options.parse_args_and_arch(parser, [str(self.data), *TASK, *SETTINGS, *map(str, arguments)])
        self.cfg = cfg = convert_namespace_to_omegaconf(self.args)
        self.task = setup_task(cfg.task)
        model = self.task.build_model(cfg.model)
        self.trainer = Trainer(cfg, self.task, model, self.task.build_criterion(cfg.criterion))
        epochs = self.trainer.get_train_iterator(1)
        self.trainer.train_step([next(epochs.next_epoch_itr())])
        self.trainer.consolidate_optimizer()
        state = self.trainer.state_dict()
        state["extra_state"].update(train_iterator=epochs.state_dict(), val_loss=1.0)
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

    def command(self, *arguments):
        with cli.fairseq_capsule.make_context("fairseq-capsule", [str(argument) for argument in arguments]) as context:
            cli.fairseq_capsule.invoke(context)

    # Each way takes a checkpoint, and returns or raises the error that stops it.

    def size(self, checkpoint):
        self.command("size", checkpoint, "--data", self.data)

    def average(self, checkpoint):
        self.command("average", checkpoint, self.good, "--output", self.folder / "average.pt")

    def hub_load(self, checkpoint):
        hub.load(checkpoint, self.data).translate("w1 w2", beam=1, max_len_b=2)

    def from_pretrained(self, checkpoint):
        CapsuleTransformerModel.from_pretrained(str(checkpoint.parent), checkpoint.name, str(self.data))

    def generate(self, checkpoint, data=None, task="capsule_translation"):
        cfg = copy.deepcopy(generation(task))
        cfg.task.data, cfg.common_eval.path = str(data or self.data), str(checkpoint)
        generate.main(cfg)

    def generate_ensemble(self, checkpoint):
        self.generate(f"{self.good}:{checkpoint}")

    def interactive(self, checkpoint):
        (self.folder / "input").write_text("w1 w2\n")
        words = [self.data, *TASK, "--path", checkpoint, "--cpu", "--beam", 1, "--max-len-b", 2]
        words += ["--input", self.folder / "input"]
        parser = options.get_interactive_generation_parser()
        interactive.main(options.parse_args_and_arch(parser, [str(word) for word in words]))

    def validate(self, checkpoint):
        words = [self.data, "--task", "translation", "--path", checkpoint, *SETTINGS]
        parser = options.get_validation_parser()
        with unchanged_root_logger():
            validate.main(options.parse_args_and_arch(parser, [str(word) for word in words]))

    def hub_ensemble(self, checkpoint):
        hub.load([self.good, checkpoint], self.data).translate("w1 w2", beam=1, max_len_b=2)

    def restore_file(self, checkpoint):
        cfg = copy.deepcopy(self.cfg.checkpoint)
        with open_dict(cfg):
            OmegaConf.resolve(cfg)
            cfg.restore_file = str(checkpoint)
        checkpoint_utils.load_checkpoint(cfg, self.trainer)


WAYS = [
    *("size", "average", "hub_load", "hub_ensemble", "from_pretrained"),
    *("generate", "generate_ensemble", "interactive", "validate", "restore_file"),
]
