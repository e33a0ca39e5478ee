"""Behaviour that all models of the package share, and how they attach and run the parts of mechanisms."""

import importlib
from pathlib import Path
from typing import Any, Dict, Optional, Set, Tuple

from fairseq.models import BaseFairseqModel
from torch import nn

from fairseq_capsule.data.dictionaries import keep_digests
from fairseq_capsule.errors import UserError
from fairseq_capsule.hub import CapsuleHub, quiet_loading
from fairseq_capsule.mechanisms.base import IncrementalState, KnowsBeams, Mechanism, Source, Target
from fairseq_capsule.models.attention import SplitAttention
from fairseq_capsule.options import option


class CapsuleModel(BaseFairseqModel):
    """A mixin for the models of the package.

    It passes the beam size to the decoder, reports a checkpoint with another dictionary clearly, and returns a hub
    interface with `inspect`.
    """

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> Any:
        """Build the model as fairseq does, and store digests of the task's dictionaries in the checkpoints.

        Raises:
            UserError: the task has the state of a checkpoint that was trained with other dictionaries.
        """
        keep_digests(task)
        return super().build_model(cfg, task)

    @classmethod
    def from_pretrained(
        cls, model_name_or_path: Any, checkpoint_file: str = "model.pt", *args: Any, **kwargs: Any
    ) -> CapsuleHub:
        """Load a model as fairseq does. The returned hub interface also has `inspect`."""
        with quiet_loading(checkpoint_file):
            importlib.import_module("fairseq_capsule.tasks")  # by name, because it imports the models
            hub = super().from_pretrained(model_name_or_path, checkpoint_file, *args, **kwargs)
        loaded = CapsuleHub(hub.cfg, hub.task, hub.models)
        loaded.checkpoint = str(Path(model_name_or_path) / checkpoint_file)
        return loaded

    def set_beam_size(self, beam_size: int) -> None:
        """Called by a generator before it decodes: `beam_size` consecutive rows of a batch are one sentence."""
        for part in self.decoder.modules():
            if isinstance(part, KnowsBeams):
                part.beam_size = beam_size

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Prepare for generation as fairseq does, and check the beam size, which fairseq checks only when it searches.

        Raises:
            UserError: the beam size is below 1.
        """
        beam = getattr(cfg.generation, "beam", 1)
        if beam < 1:
            raise UserError(f"--beam must be at least 1, not {beam}")
        super().prepare_for_inference_(cfg)

    def load_state_dict(
        self, state_dict: Dict[str, Any], strict: bool = True, model_cfg: Any = None, args: Any = None
    ) -> Any:
        """Load parameters as fairseq does, but report a dictionary of another size as such.

        fairseq would only report shapes that do not match.

        Raises:
            UserError: the checkpoint was trained with a dictionary of another size, has an embedding that is not a
                matrix, or has no weights for a module that requires them.
        """
        for side, name, part in (("source", "encoder", self.encoder), ("target", "decoder", self.decoder)):
            name += ".embed_tokens.weight"
            if name not in state_dict:
                continue
            if not state_dict[name].dim():
                raise UserError(f"the checkpoint's {name} is not a matrix; train or copy it again")
            if len(state_dict[name]) != part.embed_tokens.num_embeddings:
                raise UserError(
                    f"the checkpoint's {side} dictionary has {len(state_dict[name])} entries, but the data's has "
                    f"{part.embed_tokens.num_embeddings}; binarise the data with the checkpoint's dictionary"
                )
        return super().load_state_dict(state_dict, strict, model_cfg, args)


def attach(side: Any, mechanism: Mechanism, part: Optional[nn.Module], layerdrop: float = 0.0) -> None:
    """Attach the part of a mechanism to an encoder or decoder, after the parts that it already has.

    Args:
        side: has `mechanism_parts`, the mechanism of each part by the attribute that holds it.
        layerdrop: the probability with which the side drops a layer.

    Raises:
        UserError: the side has something of this name, or drops layers whose outputs the part reads.
    """
    if part is None:
        return
    name = getattr(part, "ATTACHED_AS", mechanism.name)
    if hasattr(side, name):
        raise UserError(f"{mechanism.name}: the {type(side).__name__} already has a part {name}; turn one of them off")
    if layerdrop and reads_layers(part):
        off = " ".join(
            f"no {option(name)}" if value is False else f"{option(name)} {value}"
            for name, value in mechanism.off.items()
        )
        raise UserError(
            f"layerdrop does not work with {mechanism.name}, which reads the output of every layer; use {off}"
        )
    side.add_module(name, part)
    side.mechanism_parts[name] = mechanism.name


def reads_layers(part: nn.Module) -> bool:
    """Return whether a part reads the outputs of layers."""
    return hasattr(part, "LAYERS")


def run_on_source(encoder: Any, source: Source) -> Source:
    """Run the parts of an encoder, in order. Only those that read layers get them."""
    layers = source.layers
    for name in encoder.mechanism_parts:
        part = getattr(encoder, name)
        source = part(source._replace(layers=layers if reads_layers(part) else ()))
    return source._replace(layers=())


def run_on_target(
    decoder: Any, target: Target, source: Source, incremental_state: Optional[IncrementalState]
) -> Target:
    """Run the parts of a decoder, in order. Only those that read layers get them."""
    layers = target.layers
    for name in decoder.mechanism_parts:
        part = getattr(decoder, name)
        target = part(target._replace(layers=layers if reads_layers(part) else ()), source, incremental_state)
    return target


def changed_parameters(model: BaseFairseqModel) -> Tuple[Set[str], Set[str]]:
    """Return the names of the parameters that mechanisms added to fairseq's model, and of those that they removed."""
    added: Set[str] = set()
    removed: Set[str] = set()
    for prefix, module in model.named_modules():
        for name in getattr(module, "mechanism_parts", ()):
            part = getattr(module, name)
            added |= {f"{prefix}.{name}.{inner}" for inner, _ in part.named_parameters(remove_duplicate=False)}
        if isinstance(module, SplitAttention) and module.combines_heads:
            removed |= {f"{prefix}.out_proj.{name}" for name in ("weight", "bias")}
    return added, removed
