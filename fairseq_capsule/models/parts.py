"""How encoders and decoders hold and run the parts of mechanisms, and keep what depends on the source alone."""

from typing import Any, Dict, NamedTuple, Optional, Set, Tuple

from fairseq.models import BaseFairseqModel, FairseqIncrementalDecoder
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from capsule_routing.errors import UserError
from fairseq_capsule.mechanisms.attaching import add_part
from fairseq_capsule.mechanisms.base import IncrementalState, Mechanism, Source, Target
from fairseq_capsule.mechanisms.registry import off, registered
from fairseq_capsule.models.attention import SplitAttention
from fairseq_capsule.options import option


def attach(side: Any, name: str, mechanism: Mechanism, part: Optional[nn.Module], dropping: str = "") -> None:
    """Attach the part of a mechanism to a side, the "encoder" or "decoder", after the parts that it already has.

    `dropping` names what leaves out layers of the side. Raises a UserError if the part reads the outputs of all layers,
    or if the side has something of this name.
    """
    if part is None:
        return
    if dropping and name in mechanism.reads_layers:
        problem = f"{dropping} does not work with {mechanism.name}, which reads the output of every layer"
        items = off(mechanism).items()
        without = (f"no {option(name)}" if value is False else f"{option(name)} {value}" for name, value in items)
        raise UserError(f"{problem}; use {' '.join(without)}")
    add_part(side, mechanism.name, part, f"the {type(side).__name__}")


def run_encoder_parts(encoder: Any, source: Source) -> Source:
    """Run the parts of an encoder, in order. `source` has the outputs of layers, for the mechanisms that read them."""
    layers = source.layers
    for attribute, name in encoder.mechanism_parts.items():
        mechanism = registered(name)
        source = source._replace(layers=layers if "encoder" in mechanism.reads_layers else ())
        source = mechanism.run_encoder(getattr(encoder, attribute), source)
    return source


class Kept(NamedTuple):
    """What mechanisms keep of a source.

    Attributes:
        of_parts: the result of `keep` for each part, by its attribute.
        rows: the number of rows of the batch.
        beams: how many consecutive rows are one sentence.
    """

    of_parts: Dict[str, Any]
    rows: int
    beams: int


class RunsParts(FairseqIncrementalDecoder):
    """A mixin for fairseq's decoders: runs the parts of mechanisms, and keeps what they need of each source sentence.

    A generator announces `beam_size`: as many consecutive rows of a batch are one sentence.
    """

    beam_size = 1
    mechanism_parts: Dict[str, str]  # the mechanism of each part, by the attribute that holds it

    def beams_of(self, states: Tensor) -> int:
        """Return how many consecutive rows of an encoder's states `[B, I, C]` are one sentence.

        This is `beam_size` if the rows of each such group are equal. Otherwise it is 1: `beam_size` may come from an
        earlier generator.
        """
        if self.beam_size == 1 or states.size(0) % self.beam_size:
            return 1
        beams = states.unflatten(0, (-1, self.beam_size))
        return self.beam_size if bool((beams == beams[:, :1]).all()) else 1

    def run_parts(self, target: Target, source: Source) -> Target:
        """Run the decoder parts, in order. `target` has the outputs of layers, for the mechanisms that read them."""
        kept, layers = self._kept(source, target.incremental_state), target.layers
        sentences = _first_rows(source, kept.beams)
        for attribute, name in self.mechanism_parts.items():
            mechanism, part, of_part = registered(name), getattr(self, attribute), kept.of_parts[attribute]
            target = target._replace(layers=layers if "decoder" in mechanism.reads_layers else ())
            if kept.beams == 1 or of_part is None:
                target = mechanism.run_decoder(part, target, source, of_part)
            else:
                given = _beams_as_steps(target, kept.beams)
                result = mechanism.run_decoder(part, given, sentences, of_part)
                outputs = tree_map_only(Tensor, _steps_as_beams, result.outputs)
                states = _steps_as_beams(result.states)
                target = target._replace(states=states, outputs={**target.outputs, **outputs})
        return target

    def _kept(self, source: Source, incremental_state: Optional[IncrementalState]) -> Kept:
        kept: Optional[Kept] = self.get_incremental_state(incremental_state, "kept")
        if kept is None:
            beams = 1 if incremental_state is None else self.beams_of(source.states)
            sentences = _first_rows(source, beams)
            of_parts = {
                attribute: registered(name).keep(getattr(self, attribute), sentences)
                for attribute, name in self.mechanism_parts.items()
            }
            kept = Kept(of_parts, len(source.states), beams)
            if incremental_state is not None:
                self.set_incremental_state(incremental_state, "kept", kept)
        return kept

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Drop finished sentences. The beams of a sentence share one entry, so reordering within them moves nothing."""
        super().reorder_incremental_state(incremental_state, new_order)
        kept: Optional[Kept] = self.get_incremental_state(incremental_state, "kept")
        if kept is None or kept.rows == len(new_order):
            return
        sentences, beams = new_order // kept.beams, kept.beams
        if len(new_order) % beams == 0 and bool((sentences.view(-1, beams) == sentences[::beams, None]).all()):
            sentences = sentences[::beams]
        else:
            beams = 1  # the rows are not beams: they are copies of a sentence that are now reordered separately
        # Indexing keeps the memory layout; index_select does not.
        of_parts = tree_map_only(Tensor, lambda tensor: tensor[sentences], kept.of_parts)
        self.set_incremental_state(incremental_state, "kept", Kept(of_parts, len(new_order), beams))


def _first_rows(source: Source, beams: int) -> Source:
    """Return one row for each sentence of a batch in which `beams` consecutive rows are equal."""
    if beams == 1:
        return source
    vectors = {name: vector[::beams] for name, vector in source.vectors.items()}
    return Source(source.states[::beams], source.padding_mask[::beams], vectors=vectors)


def _beams_as_steps(target: Target, beams: int) -> Target:
    """Convert the states of one step from `[B, 1, C]` to `[B / beams, beams, C]`; leave out the outputs of others."""
    states, *layers = (states.view(-1, beams, states.size(-1)) for states in (target.states, *target.layers))
    return target._replace(states=states, layers=tuple(layers), outputs={})


def _steps_as_beams(tensor: Tensor) -> Tensor:
    """Convert `[B / beams, beams, …]` to `[B, 1, …]`."""
    return tensor.flatten(0, 1).unsqueeze(1)


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
