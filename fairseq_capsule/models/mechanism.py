"""What a mechanism is: one way to route in a model, with everything that the package knows about it in one place.

A mechanism is an instance of a subclass of `Mechanism`, registered by `register_mechanism`. The models, presets,
commands, tables, inspector and tests read the registry and name no mechanism.
"""

from typing import (
    Any,
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
    Type,
    Union,
)

from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, FairseqDecoder, FairseqEncoder
from torch import Tensor

from fairseq_capsule.models.statistics import Statistics
from fairseq_capsule.models.views import NamedArray, Sentence, View

IncrementalState = Dict[str, Dict[str, Optional[Tensor]]]


class EncodedSource(NamedTuple):
    """What a decoder reads of a batch of sources.

    Attributes:
        states: the encoder's output `[I, B, C]`.
        padding_mask: `[B, I]`, True marks padding.
        vectors: what mechanisms added to the encoder's output, each `[B, …]`, by the mechanism's name.
    """

    states: Tensor
    padding_mask: Tensor
    vectors: Mapping[str, Tensor]


class Mechanism:
    """One way to route.

    A subclass sets the attributes and overrides the hooks that it needs; by default a hook does nothing.

    Attributes:
        name: identifies the mechanism; a decoder's `net_output[1]` and an encoder's output use it as a key.
        summary: one sentence for people: what it adds to a model, and the paper.
        options: a dataclass whose fields become options of the models that it can be part of.
        off: values of options with which a model contains nothing of it.
        preset: the first part of the names of its presets (`mine` gives `mine_transformer_base`, …), or None.
        on: values of options in its presets.
        on_lstm: whether it can be part of fairseq's LSTM too: then it uses the decoder hooks alone.
        iterations: the option that sets the number of its routing iterations, or None.
        criterion: the name of the registered criterion that knows its losses, or None.
        layer_lists: names of those of the encoder's module lists that it adds with one module for each layer, so that
            pruning (`--encoder-layers-to-keep`) keeps the modules of the layers that it keeps.
        plain: names of those of its arrays that a model without any mechanism has too.
        views: how `arrays` are shown.
    """

    name: str
    summary: str
    options: Type[FairseqDataclass]
    off: Mapping[str, Any]
    preset: Optional[str] = None
    on: Mapping[str, Any] = {}
    on_lstm: bool = False
    iterations: Optional[str] = None
    criterion: Optional[str] = None
    layer_lists: Tuple[str, ...] = ()
    plain: FrozenSet[str] = frozenset()
    views: Tuple[View, ...] = ()

    def known_to(self, config: Any) -> bool:
        """Whether a config has the options of this mechanism."""
        return all(hasattr(config, name) for name in self.off)

    def is_on(self, config: Any) -> bool:
        """Whether a model of that config contains the mechanism."""
        return self.known_to(config) and any(
            str(getattr(config, name)) != str(value) for name, value in self.off.items()
        )

    def routes(self, config: Any) -> bool:
        """Whether the option `iterations` has an effect in a model of that config."""
        return self.is_on(config)

    def check(self, config: Any) -> None:
        """Raise a UserError for a value of its options that is not allowed. Called before a model is built."""

    def losses(self, config: Any) -> Mapping[str, float]:
        """The options of `criterion` with which a model of that config trains with every loss that it has the
        parameters of; empty if it has none."""
        return {}

    def build_encoder(self, encoder: FairseqEncoder, config: Any) -> None:
        """Add parts to fairseq's Transformer encoder, which is complete otherwise; `config` is fairseq's nested one,
        with the options of all mechanisms under their own names."""

    def encode(self, encoder: FairseqEncoder, layers: Sequence[Tensor], padding_mask: Tensor) -> Optional[Tensor]:
        """A tensor `[B, …]` that the decoder reads under the mechanism's name, or None.

        Args:
            layers: the output of every encoder layer, `[B, I, C]`, from the lowest on.
            padding_mask: `[B, I]`, True marks padding.
        """
        return None

    @property
    def encodes(self) -> bool:
        """Whether `encode` is overridden: only then the encoder keeps the outputs of its layers for it."""
        return type(self).encode is not Mechanism.encode

    def build_decoder(self, decoder: FairseqDecoder, config: Any, source_dim: int, state_dim: int) -> None:
        """Add parts to fairseq's decoder, which is complete otherwise.

        Args:
            config: as for `build_encoder`; in an LSTM, the preset's flat config.
            source_dim: the size of the encoder's states.
            state_dim: the size of the decoder's output.
        """

    def decode(
        self,
        decoder: FairseqDecoder,
        features: Tensor,
        source: EncodedSource,
        incremental_state: Optional[IncrementalState],
    ) -> Tuple[Tensor, Any]:
        """Change the decoder's output `[B, T, C]` before the output projection.

        Returns:
            The new output, and what `net_output[1]` holds under the mechanism's name; None for nothing.
        """
        return features, None

    def arrays(self, model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
        """What the model routed in a sentence and its translation, recomputed; the model is in eval mode, without
        gradients. Empty for a model without this mechanism."""
        return {}

    def statistics(self, model: BaseFairseqModel, source: Tensor, previous: Tensor) -> Statistics:
        """What `--log-routing` logs of a batch: whether the routing learns. Called in eval mode, without gradients,
        and only for a model that contains the mechanism.

        Args:
            source: source tokens `[B, I]`, padded on either side.
            previous: what the decoder reads at its steps, `[B, T]`, padded on the right.

        Returns:
            Means by their names, which are logged as `MECHANISM_NAME`; always the same names for one model.
        """
        return {}


_REGISTRY: Dict[str, Mechanism] = {}


def register_mechanism(mechanism: Mechanism) -> Mechanism:
    """Make a mechanism known to the package. The order of registration is the order of computation in a decoder.

    Raises:
        ValueError: another mechanism has this name.
    """
    known = _REGISTRY.setdefault(mechanism.name, mechanism)
    if type(known).__qualname__ != type(mechanism).__qualname__:
        raise ValueError(f"mechanism {mechanism.name!r} is registered already, by {type(known).__module__}")
    return known


def mechanisms() -> List[Mechanism]:
    """Every registered mechanism, in the order of registration."""
    return list(_REGISTRY.values())


def active_mechanisms(config: Any) -> Tuple[Mechanism, ...]:
    """The mechanisms that a model of that config contains."""
    return tuple(mechanism for mechanism in mechanisms() if mechanism.is_on(config))


def add_parts(
    side: Union[FairseqEncoder, FairseqDecoder], parts: Tuple[Mechanism, ...], build: Callable[[Mechanism], None]
) -> None:
    """Let mechanisms build their parts of an encoder or decoder.

    `side.mechanisms` are these then, and `side.added_parameters` the names of the parameters that they added.
    """
    before = {name for name, _ in side.named_parameters(remove_duplicate=False)}
    for mechanism in parts:
        build(mechanism)
    after = {name for name, _ in side.named_parameters(remove_duplicate=False)}
    side.mechanisms = parts
    side.added_parameters = frozenset(after - before)


def decode_with(
    parts: Iterable[Mechanism],
    decoder: FairseqDecoder,
    features: Tensor,
    source: EncodedSource,
    incremental_state: Optional[IncrementalState],
) -> Tuple[Tensor, Dict[str, Any]]:
    """A decoder's output `[B, T, C]` after the mechanisms, and what they add to `net_output[1]`, by their names."""
    outputs = {}
    for mechanism in parts:
        features, output = mechanism.decode(decoder, features, source, incremental_state)
        if output is not None:
            outputs[mechanism.name] = output
    return features, outputs


def check_mechanisms(config: Any) -> None:
    """Raise a UserError for an option of a mechanism that is not allowed."""
    for mechanism in mechanisms():
        if mechanism.known_to(config):
            mechanism.check(config)


def options_off(config: Any) -> Dict[str, Any]:
    """The values with which no mechanism is part of a model with such a config."""
    return {
        name: value for mechanism in mechanisms() if mechanism.known_to(config) for name, value in mechanism.off.items()
    }
