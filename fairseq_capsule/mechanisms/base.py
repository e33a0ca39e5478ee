"""The interface of a mechanism, which is one way to route in a model.

Its hooks return modules, the parts, which have all state, and say how a model runs them.
"""

from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple, Type

from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from torch import Tensor, nn

from capsule_routing.losses import Loss

IncrementalState = Dict[str, Dict[str, Optional[Tensor]]]


class Place(NamedTuple):
    """An attention: its side ("encoder", "decoder"), kind ("self", "cross") and layer, from 1 on, before pruning."""

    side: str
    kind: str
    layer: int


class Sizes(NamedTuple):
    """Sizes of the encoder's states and of the decoder's output, and the numbers of layers after pruning."""

    source: int
    target: int
    source_layers: int
    target_layers: int


class Source(NamedTuple):
    """What an encoder gives.

    Attributes:
        states: `[B, I, C]`.
        padding_mask: `[B, I]`, True marks padding.
        layers: the output of each layer, `[B, I, C]`, the lowest layer first; the last one is after the final norm.
            Only for a mechanism whose `reads_layers` names the side.
        vectors: `[B, …]`, by the name of the mechanism that added it. Beam search reorders them.
    """

    states: Tensor
    padding_mask: Tensor
    layers: Tuple[Tensor, ...] = ()
    vectors: Mapping[str, Tensor] = {}

    def with_vector(self, mechanism: str, vector: Tensor) -> "Source":
        """Return a copy with the vector of a mechanism."""
        return self._replace(vectors={**self.vectors, mechanism: vector})


class Target(NamedTuple):
    """What a decoder gives.

    Attributes:
        states: the decoder's output before the output projection, `[B, T, C]`.
        layers: the output of each layer, `[B, T, C]`, as in `Source`.
        outputs: entries for `net_output[1]`, by the name of the mechanism that added it.
        incremental_state: of fairseq, while decoding, when `T` is 1; otherwise None.
    """

    states: Tensor
    layers: Tuple[Tensor, ...] = ()
    outputs: Mapping[str, Any] = {}
    incremental_state: Optional[IncrementalState] = None

    def with_output(self, mechanism: str, output: Any) -> "Target":
        """Return a copy with the output of a mechanism."""
        return self._replace(outputs={**self.outputs, mechanism: output})


class Mechanism:
    """One way to route.

    A subclass sets the attributes and overrides the hooks that it needs. By default a hook does nothing. `encoder`,
    `decoder` and `attention` return modules that need to know nothing of fairseq. `run_encoder` and `run_decoder` call
    those after the encoder and the decoder.

    Attributes:
        name: identifies the mechanism; a key of a decoder's `net_output[1]` and of an encoder's output.
        summary: one sentence for users that states what it adds to a model, and the paper.
        options: a dataclass; its fields become options of the models that can contain the mechanism.
        on: the options that turn it on, with the values in its presets. With their defaults, a model does not contain
            the mechanism.
        preset: the first part of the names of its presets (`mine` gives `mine_transformer_base`, …), or None. There is
            also `mine_lstm` if `decoder` is the only hook for parts that it overrides.
        iterations: the name of the option that sets the number of routing iterations, or None. See `iterates`.
        reads_layers: the sides ("encoder", "decoder") whose part reads the outputs of all layers. No layer of such a
            side may be dropped or pruned.
        starts_as_baseline: whether a new model computes what the same model without the mechanism does. Then training
            can start from a baseline without a loss of quality.
        loss_weights: the default weight of each loss, by name. The criterion has the weights of the package's losses as
            options (`--bow-weight`); its option `--loss-weights NAME:NUMBER` sets those of other packages.
        needs_logits: whether `losses` reads the logits. Then the criterion keeps them, which costs memory.
    """

    name: str
    summary: str
    options: Type[FairseqDataclass]
    on: Mapping[str, Any]
    preset: Optional[str] = None
    iterations: Optional[str] = None
    reads_layers: Tuple[str, ...] = ()
    starts_as_baseline: bool = False
    loss_weights: Mapping[str, float] = {}
    needs_logits: bool = False

    def check(self, config: Any) -> None:
        """Raise a UserError if an option has a value that is not allowed. Called before a model is built."""

    def iterates(self, config: Any) -> bool:
        """Return whether the option `iterations` has an effect in a model that contains the mechanism."""
        return self.iterations is not None

    def attention(self, config: Any, place: Place) -> Mapping[str, nn.Module]:
        """Return the parts of one attention.

        - "factors": `forward(queries [B, H, L, d], keys [B, H, K, d])` returns new ones, whose products are the logits.
          At padding both (in cross-attention, keys) are 0 and should stay so. A row must not depend on other positions.
        - "logits": `forward(logits [B, H, L, K], padding_mask [B, K], factors)` returns new logits. True marks padding,
          where the logits are 0 and should stay so; the mask is None if nothing is padded. `factors` are the
          queries `[B, H, L, d]` and keys `[B, H, K, d]` whose products are the logits, for the first part; None for
          others. In the decoder's self-attention, row `l` of the result must not depend on positions after `l`. While
          decoding, all rows are computed again at each step, unless the part has `forward_next(row [B, H, 1, K],
          padding_mask [B, K], kept)`, which returns the last row and what it keeps for the next step, `[B, …]`, or None
          at the first one.
        - "heads": `forward(heads [B, L, H, d])` returns the attention's output `[B, L, C]`, in place of `W_O`.

        Several mechanisms can change the factors or the logits of an attention, in the order of the registry.
        """
        return {}

    def encoder(self, config: Any, sizes: Sizes) -> Optional[nn.Module]:
        """Return the part that runs after the encoder."""
        return None

    def run_encoder(self, part: Any, source: Source) -> Source:
        """Run the encoder part on what the encoder gives.

        In a Transformer it must keep one state for each source word, in their order; otherwise a UserError is raised.
        """
        raise NotImplementedError(f"mechanism {self.name}: run_encoder must call the part after the encoder")

    def decoder(self, config: Any, sizes: Sizes) -> Optional[nn.Module]:
        """Return the part that runs after the decoder's layers, before the output projection."""
        return None

    def keep(self, part: Any, source: Source) -> Any:
        """Compute what the decoder part needs of the source alone: a tensor or a (named) tuple of tensors, or None.

        Each tensor is `[B, …]`. While decoding this is called once for each sentence, and the model keeps the result.
        """
        return None

    def run_decoder(self, part: Any, target: Target, source: Source, kept: Any) -> Target:
        """Run the decoder part on what the decoder gives. `kept` is the result of `keep`.

        While decoding, `T` is 1. With `keep`, the hypotheses of a sentence may then take the place of the steps,
        because they share its source: each step must be computed by itself, and tensors among the outputs be
        `[B, T, …]`. What a part keeps of earlier steps, it keeps in `target.incremental_state`, and reorders it as
        fairseq's modules do.
        """
        raise NotImplementedError(f"mechanism {self.name}: run_decoder must call the part after the decoder")

    def attached_as(self, part: nn.Module) -> str:
        """Return the name of the attribute that holds a part; a side or an attention has one of a name."""
        return self.name

    def losses(
        self,
        model: BaseFairseqModel,
        net_output: Any,
        sample: Dict[str, Any],
        weights: Mapping[str, float],
        options: Any,
    ) -> Dict[str, Loss]:
        """Compute the losses of a batch, by name; those with a weight of 0 may be left out.

        The head of a loss is the submodule of the decoder part with the loss's name. With a weight of 0 it is frozen.
        In training `model` may be wrapped for several processes. `net_output` is what its forward returns for fairseq's
        batch `sample`; its first item, the logits, is None unless `needs_logits`. `weights` has the weight of each
        loss, `options` the options of the criterion.
        """
        return {}
