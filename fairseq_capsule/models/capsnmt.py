"""`capsnmt`: translation through a fixed number of capsules, in linear time (Wang et al. 2019)."""

from typing import Any, Dict, List, Optional

from fairseq import utils
from fairseq.models import (
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    FairseqIncrementalDecoder,
    register_model,
)
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from fairseq_capsule.data.dictionaries import keep_digests
from fairseq_capsule.errors import UserError
from fairseq_capsule.mechanisms import Sizes, Source
from fairseq_capsule.mechanisms.aggregation import AGGREGATION
from fairseq_capsule.models.base import CapsuleModel, attach, run_on_source
from fairseq_capsule.models.capsnmt_config import PRESETS, CapsNMTConfig
from fairseq_capsule.models.presets import register_presets
from fairseq_capsule.modules.lstm import AttentiveLSTMLayer, LSTMLayer, read_both_ways
from fairseq_capsule.options import validated
from fairseq_capsule.routing import RoutingResult

# On a CPU the output projection takes most of the time of a decoding step. If the embeddings exceed the caches and
# there are few rows (the beam of a sentence), the product takes half the time with the embeddings on the left.
FEW_ROWS, BEYOND_CACHE = 16, 2**22


class CapsNMTEncoder(FairseqEncoder):
    """Bidirectional LSTM layers followed by the aggregation of their states.

    Args:
        dictionary: the source dictionary.
        embed_tokens: the source embeddings.
        aggregation: the module that makes `M` vectors from the states of a sentence.
        layers: number of LSTM layers.
        dropout: dropout of embeddings and of each LSTM's output.
        max_source_positions: the maximum source length.
    """

    def __init__(self, dictionary, embed_tokens, aggregation, *, layers, dropout, max_source_positions):
        super().__init__(dictionary)
        size = embed_tokens.embedding_dim
        self.embed_tokens = embed_tokens
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)
        self.layers = nn.ModuleList(LSTMLayer(size, bidirectional=True, dropout=self.dropout) for _ in range(layers))
        self.mechanism_parts: Dict[str, str] = {}
        attach(self, AGGREGATION, aggregation)
        self.max_source_positions = max_source_positions

    def forward(self, src_tokens, src_lengths=None) -> Dict[str, List[Tensor]]:
        """Encode sources `[B, I]`.

        Returns:
            `encoder_out`, the capsules `[M, B, C]`, and `encoder_padding_mask`, `[B, M]`, which is False everywhere.
        """
        source = run_on_source(self, self._read(src_tokens))
        return {"encoder_out": [source.states.transpose(0, 1)], "encoder_padding_mask": [source.padding_mask]}

    def aggregate(self, src_tokens: Tensor, iterations: Optional[int] = None) -> RoutingResult:
        """Encode and aggregate sources.

        Args:
            src_tokens: `[B, I]`, padded on either side.
            iterations: the number of routing iterations; the model's own by default.

        Returns:
            `RoutingResult(capsules [B, M, C], coupling [B, I, M])`. The coupling is in the order of `src_tokens`, and
            None for simple aggregation.
        """
        source, padding = self._read(src_tokens), self.dictionary.pad()
        capsules, coupling = self.aggregation.route(source.states, source.padding_mask, iterations)
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

    def max_positions(self):
        return self.max_source_positions

    def reorder_encoder_out(self, encoder_out, new_order):
        capsules, mask = encoder_out["encoder_out"][0], encoder_out["encoder_padding_mask"][0]
        return {
            "encoder_out": [capsules.index_select(1, new_order)],
            "encoder_padding_mask": [mask.index_select(0, new_order)],
        }


class CapsNMTDecoder(FairseqIncrementalDecoder):
    """LSTM layers; the first one reads the capsules `C`. Input and output share their embeddings.

    Args:
        dictionary: the target dictionary.
        embed_tokens: the target embeddings.
        num_capsules: `M`.
        capsule_scale: the factor that the capsules were multiplied by. The attention divides them by it to compute its
            keys.
        context: what is added to an embedding `y_t` before the first layer. "attention": `ATT(C, s_{t-1})`, where `s`
            is the state of the first layer. "concat": `W_c [c_1; …; c_M]`; each layer then processes the whole target
            in one call.
        norms: "both": the first layer reads `u_t = LayerNorm(y_t + context)`. "after": it reads `y_t + context`. Each
            layer ends with a layer norm in both cases.
        layers, dropout: as for the encoder.
        max_target_positions: the maximum target length.
    """

    def __init__(
        self,
        dictionary,
        embed_tokens,
        *,
        num_capsules,
        capsule_scale,
        context,
        norms,
        layers,
        dropout,
        max_target_positions,
    ):
        super().__init__(dictionary)
        self.capsule_scale = capsule_scale
        size = embed_tokens.embedding_dim
        self.embed_tokens = embed_tokens
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)
        self.context = nn.Linear(num_capsules * size, size, bias=False) if context == "concat" else None
        kind = AttentiveLSTMLayer if self.context is None else LSTMLayer
        first = kind(size, dropout=self.dropout, input_norm=nn.LayerNorm(size) if norms == "both" else None)
        self.layers = nn.ModuleList([first, *(LSTMLayer(size, dropout=self.dropout) for _ in range(layers - 1))])
        self.max_target_positions = max_target_positions

    def forward(self, prev_output_tokens, encoder_out=None, incremental_state=None):
        """Return logits `[B, T, V]`, and a dict `{"attn": None}`: it has no attention to source words."""
        features, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        return self.output_layer(features), extra

    def extract_features(self, prev_output_tokens, encoder_out=None, incremental_state=None):
        """Return features `[B, T, C]` and the dict of `forward`. With `incremental_state`, only the last step."""
        kept = self.get_incremental_state(incremental_state, "states") or {}
        if incremental_state is not None:
            prev_output_tokens = prev_output_tokens[:, -1:]
        capsules = encoder_out["encoder_out"][0].transpose(0, 1)
        features = self.dropout(self.embed_tokens(prev_output_tokens))
        # This depends only on the source, so it is cached while decoding.
        source = kept.get("source")
        if source is None:
            if self.context is None:
                source = self.layers[0].key(capsules / self.capsule_scale)
            else:
                source = self.context(capsules.flatten(1))
        states: Dict[str, Optional[Tensor]] = {"source": source}
        for number, layer in enumerate(self.layers):
            state = (kept[f"hidden{number}"], kept[f"cell{number}"]) if kept else None
            if number == 0 and self.context is None:
                features, state = layer(features, capsules, source, state)
            else:
                inputs = features if number else features + source.unsqueeze(1)
                features, state = layer(inputs, state)
            states[f"hidden{number}"], states[f"cell{number}"] = state
        if incremental_state is not None:
            self.set_incremental_state(incremental_state, "states", states)
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

    def max_positions(self):
        return self.max_target_positions

    def reorder_incremental_state(self, incremental_state, new_order):
        kept = self.get_incremental_state(incremental_state, "states")
        if kept is None:
            return
        reordered = {name: part.index_select(0 if name == "source" else 1, new_order) for name, part in kept.items()}
        self.set_incremental_state(incremental_state, "states", reordered)


@register_model("capsnmt", dataclass=CapsNMTConfig)
class CapsNMTModel(CapsuleModel, FairseqEncoderDecoderModel):
    """CapsNMT, or its baseline with simple aggregation (Wang et al. 2019, Table 1)."""

    config_type = CapsNMTConfig

    @classmethod
    def build_model(cls, cfg, task):
        """Build the model of a preset's config.

        Raises:
            UserError: an option has a value that is not allowed, or the embeddings are shared but the dictionaries
                differ.
        """
        keep_digests(task)
        config = validated(cfg, cls.config_type)
        source, target = task.source_dictionary, task.target_dictionary
        if config.share_all_embeddings and source != target:
            raise UserError("--share-all-embeddings needs a joined dictionary; preprocess with --joined-dictionary")
        size = config.encoder_embed_dim
        embeddings = _embedding(target, size)
        aggregation: Any = AGGREGATION.encoder(config, Sizes(size, size, config.encoder_layers, config.decoder_layers))
        encoder = CapsNMTEncoder(
            source,
            embeddings if config.share_all_embeddings else _embedding(source, size),
            aggregation,
            layers=config.encoder_layers,
            dropout=config.dropout,
            max_source_positions=config.max_source_positions,
        )
        decoder = CapsNMTDecoder(
            target,
            embeddings,
            num_capsules=aggregation.num_capsules,
            capsule_scale=aggregation.capsule_scale,
            context=config.decoder_context,
            norms=config.decoder_norms,
            layers=config.decoder_layers,
            dropout=config.dropout,
            max_target_positions=config.max_target_positions,
        )
        model = cls(encoder, decoder)
        model.cfg = config
        return model

    @property
    def full_context_alignment(self):
        """Refuse `--print-alignment`, which reads this attribute first.

        Raises:
            UserError: always, because CapsNMT has no attention to source words.
        """
        raise UserError(
            "CapsNMT has no attention to source words for --print-alignment; leave the option out. "
            "fairseq-capsule inspect shows which words go to each capsule"
        )


def _embedding(dictionary, size: int) -> nn.Embedding:
    """Build embeddings that are initialised as in fairseq's Transformer, but never scaled.

    The vectors of the source are added to embeddings. Small embeddings let them dominate at the start of training.
    """
    embedding = nn.Embedding(len(dictionary), size, dictionary.pad())
    nn.init.normal_(embedding.weight, std=size**-0.5)
    nn.init.zeros_(embedding.weight[dictionary.pad()])
    return embedding


register_presets(CapsNMTModel, PRESETS)
