"""`capsnmt`: translation through a fixed number of capsules, in linear time (Wang et al. 2019)."""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from fairseq import models, utils
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from capsule_routing.errors import UserError
from capsule_routing.functions import RoutingResult
from capsule_routing.modules.lstm import AttentiveLSTMLayer, LSTMLayer, read_both_ways
from fairseq_capsule.checkpoints.belonging import keep_belonging
from fairseq_capsule.mechanisms.aggregation import AGGREGATION, AggregationConfig
from fairseq_capsule.mechanisms.base import IncrementalState, Sizes, Source
from fairseq_capsule.mechanisms.registry import check_mechanisms
from fairseq_capsule.models.base import CapsuleModel, FeaturesOnly, refuse_left_padded_targets
from fairseq_capsule.models.parts import attach, run_encoder_parts
from fairseq_capsule.options import setting

# On a CPU the output projection takes most of the time of a decoding step. If the embeddings exceed the caches and
# there are few rows (the beam of a sentence), the product takes half the time with the embeddings on the left.
FEW_ROWS, BEYOND_CACHE = 16, 2**22

CONTEXTS = ChoiceEnum(["attention", "concat"])
NORMS = ChoiceEnum(["both", "after"])


@dataclass
class CapsNMTConfig(AggregationConfig):
    """All options, with simple aggregation. Building the model raises a UserError that names a wrong option."""

    encoder_embed_dim: int = setting(512, "size of the encoder's states and of the capsules", lowest=1)
    encoder_layers: int = setting(4, "bidirectional LSTM layers of the encoder", lowest=1)
    decoder_embed_dim: int = setting(512, "the same as --encoder-embed-dim", lowest=1)
    decoder_layers: int = setting(3, "LSTM layers of the decoder", lowest=1)
    dropout: float = setting(0.1, "dropout of embeddings and of each LSTM's output", probability=True)
    share_all_embeddings: bool = setting(
        False, "share encoder and decoder embeddings; the output always shares the decoder's"
    )
    decoder_context: CONTEXTS = setting(
        "attention", "how the decoder reads the capsules; concat: as in the preprint of 2018"
    )
    decoder_norms: NORMS = setting(
        "both",
        "layer norms of the decoder. both: of the first LSTM's input, which is the sum of an embedding and "
        "the context, and after each LSTM (Fig. 1); after: only after each LSTM",
    )
    max_source_positions: int = setting(1024, "max number of tokens in the source sequence", lowest=1)
    max_target_positions: int = setting(1024, "max number of tokens in the target sequence", lowest=1)

    def __post_init__(self) -> None:
        size, other = self.encoder_embed_dim, self.decoder_embed_dim
        if other != size:
            sizes = f"--decoder-embed-dim {other} must equal --encoder-embed-dim {size}"
            raise UserError(f"{sizes}, because capsules are added to the decoder's inputs")
        check_mechanisms(self)


class CapsNMTEncoder(models.FairseqEncoder):
    """Bidirectional LSTM layers followed by the aggregation of their states to `M` vectors."""

    def __init__(self, config: CapsNMTConfig, dictionary: Dictionary, embed_tokens: nn.Embedding, aggregation: Any):
        super().__init__(dictionary)
        size = config.encoder_embed_dim
        self.embed_tokens = embed_tokens
        self.dropout = FairseqDropout(config.dropout, module_name=type(self).__name__)
        layers = (LSTMLayer(size, bidirectional=True, dropout=self.dropout) for _ in range(config.encoder_layers))
        self.layers = nn.ModuleList(layers)
        self.mechanism_parts: Dict[str, str] = {}
        attach(self, "encoder", AGGREGATION, aggregation)
        self.max_source_positions = config.max_source_positions

    def forward(self, src_tokens: Tensor, src_lengths: Optional[Tensor] = None) -> Dict[str, List[Tensor]]:
        """Encode sources `[B, I]` to `encoder_out`, the capsules `[M, B, C]`, and a mask `[B, M]` that is False."""
        source = run_encoder_parts(self, self._read(src_tokens))
        return {"encoder_out": [source.states.transpose(0, 1)], "encoder_padding_mask": [source.padding_mask]}

    def aggregate(self, src_tokens: Tensor, iterations: Optional[int] = None) -> RoutingResult:
        """Encode and aggregate sources `[B, I]`, padded on either side, by `iterations` or all routing iterations.

        Returns capsules `[B, M, C]` and coupling `[B, I, M]`, in the order of `src_tokens`; None for simple
        aggregation.
        """
        source, padding = self._read(src_tokens), self.dictionary.pad()
        capsules, coupling = self.aggregation(source.states, source.padding_mask, iterations)
        if coupling is not None:
            places = src_tokens.ne(padding).long().cumsum(1).sub(1).clamp(min=0)
            coupling = coupling.gather(1, places.unsqueeze(-1).expand_as(coupling))
            coupling = coupling.masked_fill(src_tokens.eq(padding).unsqueeze(-1), 0)
        return RoutingResult(capsules, coupling)

    def _read(self, src_tokens: Tensor) -> Source:
        # An LSTM must read the words before the padding.
        tokens = utils.convert_padding_direction(src_tokens, self.dictionary.pad(), left_to_right=True)
        mask = tokens.eq(self.dictionary.pad())
        embedded = self.dropout(self.embed_tokens(tokens))
        return Source(read_both_ways(self.layers, embedded, (~mask).sum(1).clamp(min=1)), mask)

    def max_positions(self) -> int:
        return self.max_source_positions

    def reorder_encoder_out(self, encoder_out: Dict[str, List[Tensor]], new_order: Tensor) -> Dict[str, List[Tensor]]:
        capsules, mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        capsules, mask = capsules.index_select(1, new_order), mask.index_select(0, new_order)
        return {"encoder_out": [capsules], "encoder_padding_mask": [mask]}


class CapsNMTDecoder(models.FairseqIncrementalDecoder):
    """LSTM layers; the first one reads the capsules `C`. Input and output share their embeddings.

    With `--decoder-context attention`, `ATT(C, s_{t-1})` is added to an embedding `y_t` before the first layer, where
    `s` is the state of that layer; for its keys, the capsules are divided by the aggregation's `capsule_scale`. With
    "concat" it is `W_c [c_1; …; c_M]`, and each layer processes the whole target in one call.
    """

    def __init__(self, config: CapsNMTConfig, dictionary: Dictionary, embed_tokens: nn.Embedding, aggregation: Any):
        super().__init__(dictionary)
        self.capsule_scale = aggregation.capsule_scale
        size = config.decoder_embed_dim
        self.embed_tokens = embed_tokens
        self.dropout = FairseqDropout(config.dropout, module_name=type(self).__name__)
        concatenates = config.decoder_context == "concat"
        self.context = nn.Linear(aggregation.num_capsules * size, size, bias=False) if concatenates else None
        kind = LSTMLayer if concatenates else AttentiveLSTMLayer
        norm = nn.LayerNorm(size) if config.decoder_norms == "both" else None
        first = kind(size, dropout=self.dropout, input_norm=norm)
        others = (LSTMLayer(size, dropout=self.dropout) for _ in range(config.decoder_layers - 1))
        self.layers = nn.ModuleList([first, *others])
        self.max_target_positions = config.max_target_positions

    def forward(self, prev_output_tokens: Tensor, *args: Any, **kwargs: Any) -> Tuple[Tensor, Dict[str, None]]:
        """Return logits `[B, T, V]`, and a dict `{"attn": None}`. The arguments are those of `extract_features`."""
        features, extra = self.extract_features(prev_output_tokens, *args, **kwargs)
        return self.output_layer(features), extra

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: Any = None, incremental_state: Optional[IncrementalState] = None
    ) -> Tuple[Tensor, Dict[str, None]]:
        """Return features `[B, T, C]` and `{"attn": None}`: there is no attention to source words.

        With `incremental_state`, they are those of the last step.
        """
        source, kept = self.get_incremental_state(incremental_state, "states") or (None, None)
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
        capsules = encoder_out["encoder_out"][0].transpose(0, 1)
        features = self.dropout(self.embed_tokens(prev_output_tokens))
        # This depends only on the source, so it is cached while decoding.
        if source is None:
            first: Any = self.layers[0]
            source = self.context(capsules.flatten(1)) if self.context else first.key(capsules / self.capsule_scale)
        states = []
        if self.context is not None:
            features = features + source.unsqueeze(1)
        for number, layer in enumerate(self.layers):
            attended = (capsules, source) if number == 0 and self.context is None else ()
            features, state = layer(features, *attended, kept[number] if kept else None)
            states.append(state)
        if incremental_state is not None:
            self.set_incremental_state(incremental_state, "states", (source, states))
        return features, {"attn": None}

    def output_layer(self, features: Tensor) -> Tensor:
        embeddings, rows = self.output_embeddings, features.flatten(0, -2)
        if features.device.type == "cpu" and len(rows) <= FEW_ROWS and embeddings.numel() >= BEYOND_CACHE:
            return (embeddings @ rows.t()).t().unflatten(0, features.shape[:-1])
        return nn.functional.linear(features, embeddings)

    @property
    def output_embeddings(self) -> Tensor:
        """The output embeddings `E` `[V, C]`."""
        return self.embed_tokens.weight

    def max_positions(self) -> int:
        return self.max_target_positions

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        kept = self.get_incremental_state(incremental_state, "states")
        if kept is not None:
            source = kept[0].index_select(0, new_order)
            states = [tuple(part.index_select(1, new_order) for part in state) for state in kept[1]]
            self.set_incremental_state(incremental_state, "states", (source, states))


class CapsNMTModel(FeaturesOnly, CapsuleModel, models.FairseqEncoderDecoderModel):
    """CapsNMT, or its baseline with simple aggregation (Wang et al. 2019, Table 1)."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> Any:
        """Build the model of a preset's config. Raises a UserError if an option has a value that is not allowed."""
        keep_belonging(task)
        refuse_left_padded_targets(task)
        config = cls.checked(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        if config.share_all_embeddings and source != target:
            raise UserError("--share-all-embeddings needs a joined dictionary; preprocess with --joined-dictionary")
        size = config.encoder_embed_dim
        embeddings = _embedding(target, size)
        aggregation = AGGREGATION.encoder(config, Sizes(size, size, config.encoder_layers, config.decoder_layers))
        of_source = embeddings if config.share_all_embeddings else _embedding(source, size)
        encoder = CapsNMTEncoder(config, source, of_source, aggregation)
        model = cls(encoder, CapsNMTDecoder(config, target, embeddings, aggregation))
        model.cfg = config
        return model


def _embedding(dictionary: Dictionary, size: int) -> nn.Embedding:
    """Build embeddings that are initialised as in fairseq's Transformer, but never scaled.

    The vectors of the source are added to embeddings. Small embeddings let them dominate at the start of training.
    """
    embedding = nn.Embedding(len(dictionary), size, dictionary.pad())
    nn.init.normal_(embedding.weight, std=size**-0.5)
    nn.init.zeros_(embedding.weight[dictionary.pad()])
    return embedding
