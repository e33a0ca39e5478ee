"""Behaviour that all models of the package share, and how they attach and run the parts of mechanisms."""

import itertools
import logging
from pathlib import Path
from typing import Any, Dict, Optional, Set, Tuple

from fairseq.models import BaseFairseqModel
from torch import nn

from capsule_routing.errors import UserError
from fairseq_capsule.data.dictionaries import BINARISE, keep_digests
from fairseq_capsule.hub import CapsuleHub, quiet_loading
from fairseq_capsule.mechanisms.base import KnowsBeams, Mechanism, add_part, heads, off
from fairseq_capsule.models.attention import SplitAttention
from fairseq_capsule.options import option, validated

logger = logging.getLogger(__name__)


class CapsuleModel(BaseFairseqModel):
    """A mixin for the models of the package."""

    # fairseq's models override this and add the options of their nested configs.
    add_args: Any = classmethod(BaseFairseqModel.add_args.__func__)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> Any:
        """Build the model as fairseq does, and store digests of the task's dictionaries in the checkpoints."""
        keep_digests(task)
        return super().build_model(cfg, task)

    @classmethod
    def checked(cls, cfg: Any) -> Any:
        """Convert a config to the dataclass of its preset. A value that is not allowed raises a UserError."""
        return validated(cfg, getattr(cls, "__dataclass"))  # fairseq stores it when it registers the class

    @classmethod
    def from_pretrained(
        cls, model_name_or_path: Any, checkpoint_file: str = "model.pt", *args: Any, **kwargs: Any
    ) -> CapsuleHub:
        """Load a model as fairseq does. The returned hub interface also has `inspect`."""
        with quiet_loading(checkpoint_file):
            hub = super().from_pretrained(model_name_or_path, checkpoint_file, *args, **kwargs)
        loaded = CapsuleHub(hub.cfg, hub.task, hub.models)
        loaded.checkpoint = str(Path(model_name_or_path) / checkpoint_file)
        if not {"tokenizer", "bpe"} & kwargs.keys():
            loaded.read_as_prepared(hub.task.cfg.data)
        return loaded

    def set_num_updates(self, num_updates: int) -> None:
        """Called by fairseq before each step of a training, and when a checkpoint is loaded.

        After the first update, a warning names the losses of the mechanisms that the criterion does not compute: the
        routing criterion sets `losses_computed` of the decoder. Neither the model nor fairseq's own tasks see the
        criterion.
        """
        super().set_num_updates(num_updates)
        if num_updates == 0:
            self.decoder.losses_computed = False
        if num_updates != 1 or getattr(self.decoder, "losses_computed", True):
            return
        self.decoder.losses_computed = True  # warn once: with --update-freq this is called again
        if not any(parameter.requires_grad for parameter in self.parameters()):  # only a probe of the model is trained
            return
        for mechanism, losses in itertools.groupby(heads(self), lambda head: head[0]):
            missing = ", ".join(name for _, name, _ in losses)
            logger.warning(
                f"{mechanism.name}: the criterion does not compute the losses {missing}, so they are off; "
                "--criterion label_smoothed_cross_entropy_with_routing_losses computes them"
            )

    def set_beam_size(self, beam_size: int) -> None:
        """Called by a generator before it decodes: `beam_size` consecutive rows of a batch are one sentence."""
        for part in self.decoder.modules():
            if isinstance(part, KnowsBeams):
                part.beam_size = beam_size

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Prepare for generation as fairseq does, which checks the beam size only when it searches."""
        beam = getattr(cfg.generation, "beam", 1)
        if beam < 1:
            raise UserError(f"--beam must be at least 1, not {beam}")
        super().prepare_for_inference_(cfg)

    def load_state_dict(self, state_dict: Dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load parameters as fairseq does, but report a dictionary of another size as such, not as a wrong shape."""
        for side, name, part in (("source", "encoder", self.encoder), ("target", "decoder", self.decoder)):
            name += ".embed_tokens.weight"
            if name not in state_dict:
                continue
            if not state_dict[name].dim():
                raise UserError(f"the checkpoint's {name} is not a matrix; train or copy it again")
            size = part.embed_tokens.num_embeddings
            if len(state_dict[name]) != size:
                sizes = f"has {len(state_dict[name])} entries, but the data's has {size}"
                raise UserError(f"the checkpoint's {side} dictionary {sizes}; {BINARISE}")
        return super().load_state_dict(state_dict, *args, **kwargs)


def refuse_left_padded_targets(task: Any) -> None:
    """Raise a UserError if a task pads targets on the left, because an LSTM decoder would read the padding first."""
    if getattr(task.cfg, "left_pad_target", False):
        raise UserError("--left-pad-target does not work with an LSTM decoder; leave the option out")


def attach(side: Any, mechanism: Mechanism, part: Optional[nn.Module], layerdrop: float = 0.0) -> None:
    """Attach the part of a mechanism to an encoder or decoder, after the parts that it already has.

    Raises a UserError if the side has something of this name, or drops layers whose outputs the part reads.
    """
    if part is None:
        return
    if layerdrop and hasattr(part, "LAYERS"):
        problem = f"layerdrop does not work with {mechanism.name}, which reads the output of every layer"
        items = off(mechanism).items()
        without = (f"no {option(name)}" if value is False else f"{option(name)} {value}" for name, value in items)
        raise UserError(f"{problem}; use {' '.join(without)}")
    add_part(side, mechanism.name, part, f"the {type(side).__name__}")


def run_parts(side: Any, first: Any, *others: Any) -> Any:
    """Run the parts of an encoder on a `Source`, or of a decoder on a `Target` (and `others`), in order.

    A part that returns something else raises a TypeError with the name of its mechanism.
    """
    layers, kind = first.layers, type(first)
    for name, mechanism in side.mechanism_parts.items():
        part = getattr(side, name)
        first = part(first._replace(layers=layers if hasattr(part, "LAYERS") else ()), *others)
        if not isinstance(first, kind):
            returned = f"returned a {type(first).__name__}, not a {kind.__name__}"
            raise TypeError(f"mechanism {mechanism}: {type(part).__name__} {returned}; use {kind.__name__}._replace")
    return first


def changed_parameters(model: BaseFairseqModel) -> Tuple[Set[str], Set[str]]:
    """Return the names of the parameters that mechanisms added to fairseq's model, and of those that they removed."""
    added, removed = set(), set()
    for prefix, module in model.named_modules():
        for name in getattr(module, "mechanism_parts", ()):
            part = getattr(module, name)
            added |= {f"{prefix}.{name}.{inner}" for inner, _ in part.named_parameters(remove_duplicate=False)}
        if isinstance(module, SplitAttention) and module.combines_heads:
            removed |= {f"{prefix}.out_proj.{name}" for name in ("weight", "bias")}
    return added, removed
