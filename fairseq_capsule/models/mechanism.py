"""The interface and the registry of mechanisms. A mechanism is one way to route in a model.

A mechanism is an instance of a subclass of `Mechanism`, registered by `register_mechanism`. The subclass contains
everything that a model needs of it. The models, presets, commands, tables and tests read the registry and do not name
any mechanism. What is shown of a mechanism is its `fairseq_capsule.inspection.Inspection`.
"""

from dataclasses import fields
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Type,
    Union,
)

from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqDecoder, FairseqEncoder
from torch import Tensor

from fairseq_capsule.models.declaration import check_declaration, check_others, same_class

IncrementalState = Dict[str, Dict[str, Optional[Tensor]]]


class EncodedSource(NamedTuple):
    """The encoder's results that a decoder reads.

    Attributes:
        states: the encoder's output `[I, B, C]`.
        padding_mask: `[B, I]`, True marks padding.
        vectors: tensors `[B, …]` that mechanisms added to the encoder's output, by the name of the mechanism.
    """

    states: Tensor
    padding_mask: Tensor
    vectors: Mapping[str, Tensor]


class Mechanism:
    """One way to route.

    A subclass sets the attributes and overrides the hooks that it needs. By default a hook does nothing.

    Attributes:
        name: identifies the mechanism; a key of a decoder's `net_output[1]` and of an encoder's output.
        summary: one sentence for users that states what it adds to a model, and the paper.
        options: a dataclass; its fields become options of the models that can contain the mechanism.
        off: option values with which a model does not contain the mechanism.
        preset: the first part of the names of its presets (`mine` gives `mine_transformer_base`, …), or None.
        on: option values in its presets.
        on_lstm: whether fairseq's LSTM can contain it too. Such a mechanism uses only the decoder hooks.
        iterations: the name of the option that sets the number of routing iterations, or None.
        criterion: the name of the registered criterion that computes its losses, or None.
        layer_lists: names of the module lists that it adds to the encoder with one module for each layer. Pruning
            (`--encoder-layers-to-keep`) keeps the modules of the kept layers.
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

    def known_to(self, config: Any) -> bool:
        """Return whether a config has the options of this mechanism."""
        return all(hasattr(config, name) for name in self.off)

    def is_on(self, config: Any) -> bool:
        """Return whether a model with this config contains the mechanism."""
        return self.known_to(config) and any(
            str(getattr(config, name)) != str(value) for name, value in self.off.items()
        )

    def routes(self, config: Any) -> bool:
        """Return whether the option `iterations` has an effect in a model with this config."""
        return self.is_on(config)

    def check(self, config: Any) -> None:
        """Raise a UserError if an option has a value that is not allowed. Called before a model is built."""

    def losses(self, config: Any) -> Mapping[str, float]:
        """Return options of `criterion` that turn on all losses for which a model with this config has parameters.

        Empty if there are no such losses.
        """
        return {}

    def build_encoder(self, encoder: FairseqEncoder, config: Any) -> None:
        """Add modules to fairseq's Transformer encoder, after fairseq has built it.

        Args:
            config: fairseq's nested config, which also holds the options of all mechanisms under their own names.
        """

    def encode(self, encoder: FairseqEncoder, layers: Sequence[Tensor], padding_mask: Tensor) -> Tensor:
        """Return a tensor `[B, …]` that the decoder reads under the mechanism's name.

        Args:
            layers: the output of each encoder layer, `[B, I, C]`, the lowest layer first.
            padding_mask: `[B, I]`, True marks padding.
        """
        raise NotImplementedError

    @property
    def encodes(self) -> bool:
        """Whether `encode` is overridden. Only then does the encoder keep the outputs of its layers."""
        return type(self).encode is not Mechanism.encode

    def build_decoder(self, decoder: FairseqDecoder, config: Any, source_dim: int, state_dim: int) -> None:
        """Add modules to fairseq's decoder, after fairseq has built it.

        Args:
            config: as for `build_encoder`; for an LSTM, the flat config of the preset.
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
            The new output `[B, T, C]`, and the entry of `net_output[1]` under the mechanism's name, or None for no
            entry.
        """
        return features, None


_REGISTRY: Dict[str, Mechanism] = {}


def register_mechanism(mechanism: Mechanism) -> Mechanism:
    """Register a mechanism. A decoder computes the mechanisms in the order of registration.

    If its class has registered it already, because the module was imported under two names, the first one is kept.

    Raises:
        ValueError: an attribute is missing or wrong (`check_declaration`), or another mechanism has its name, its
            preset or one of its options.
    """
    check_declaration(mechanism)
    known = _REGISTRY.get(mechanism.name)
    if known is not None and same_class(known, mechanism):
        return known
    check_others(mechanism, mechanisms())
    _REGISTRY[mechanism.name] = mechanism
    return mechanism


def mechanisms() -> List[Mechanism]:
    """Return all registered mechanisms, in the order of registration."""
    return list(_REGISTRY.values())


def active_mechanisms(config: Any) -> Tuple[Mechanism, ...]:
    """Return the mechanisms that a model with this config contains."""
    return tuple(mechanism for mechanism in mechanisms() if mechanism.is_on(config))


def routing_options(config: Any) -> Set[str]:
    """Return the names of the options of the mechanisms that this config turns on, without those that are off."""
    return {
        option.name
        for mechanism in active_mechanisms(config)
        for option in fields(mechanism.options)
        if str(getattr(config, option.name, None)) != str(mechanism.off.get(option.name))
    } - {"_name"}


def add_parts(
    side: Union[FairseqEncoder, FairseqDecoder], parts: Tuple[Mechanism, ...], build: Callable[[Mechanism], None]
) -> None:
    """Let mechanisms add their modules to an encoder or decoder.

    Sets `side.mechanisms`, and `side.added_parameters` to the names of the parameters that they added.
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
    """Apply mechanisms to a decoder's output `[B, T, C]`.

    Returns:
        The new output `[B, T, C]`, and the entries for `net_output[1]` by the name of the mechanism.
    """
    outputs = {}
    for mechanism in parts:
        features, output = mechanism.decode(decoder, features, source, incremental_state)
        if output is not None:
            outputs[mechanism.name] = output
    return features, outputs


def check_mechanisms(config: Any) -> None:
    """Raise a UserError if an option of a mechanism has a value that is not allowed."""
    for mechanism in mechanisms():
        if mechanism.known_to(config):
            mechanism.check(config)


def options_off(config: Any) -> Dict[str, Any]:
    """Return option values with which a model with this kind of config contains no mechanism."""
    return {
        name: value for mechanism in mechanisms() if mechanism.known_to(config) for name, value in mechanism.off.items()
    }
