"""The options of a Transformer, `config.json`."""

from difflib import get_close_matches
from typing import Any, Dict, List, Literal, Optional, Union

from huggingface_hub.dataclasses import strict
from transformers import GenerationConfig, PreTrainedConfig

from capsule_routing.errors import UserError
from capsule_routing.huggingface.cache import LAYER_TYPE
from capsule_routing.presets import PLAIN_TRANSFORMERS, TRANSFORMERS

# The architectures of fairseq_capsule that are Transformers, and plain Transformers of their sizes.
PRESETS = {**PLAIN_TRANSFORMERS, **TRANSFORMERS}

Number = Union[float, int]
Sides = Literal["none", "encoder", "decoder", "both"]
TIED = "tie_word_embeddings follows from share_all_embeddings and share_decoder_input_output_embed; make it agree"


@strict
class CapsuleConfig(PreTrainedConfig):
    """The options of a Transformer with any of the mechanisms. Those of `fairseq-train` keep their names and meaning.

    Attributes:
        vocab_size, source_vocab_size: numbers of words of the target and of the source dictionary; 0: equal.
        encoder_layers, decoder_layers: numbers of layers, after pruning.
        encoder_routing_layers: the encoder's layers that route, counted from 1, after pruning; by default all.
        activation: a name of an activation in transformers.
        sinusoids, padding_has_positions, output_bias: what models of other classes compute otherwise than fairseq
            (`from_pretrained_translation`): Marian's table of positions, positions that count padding before a
            sentence, and a bias of the logits.
        decoder_embed_dim, decoder_ffn_embed_dim: 0: those of the encoder.
        decoder_input_dim, decoder_output_dim: sizes of the decoder's embeddings and of what its output layer reads; 0:
            decoder_embed_dim.
        label_smoothing, bow_weight, bca_weight: of the loss that `labels` give, as in fairseq's criterion. A weight
            counts if the model has the head of its loss (`guided_heads`).

    Raises:
        UserError: an option is unknown or one of `generate()`, options contradict each other, or a value would train
            another model in silence. Other values out of range are errors of torch or of a layer, when the model is
            built.
        huggingface_hub.errors.StrictDataclassFieldValidationError: an option has another type, or is no choice.
    """

    model_type = "capsule_transformer"
    attribute_map = {
        "hidden_size": "decoder_embed_dim",
        "num_hidden_layers": "decoder_layers",
        "num_attention_heads": "decoder_attention_heads",
    }

    keys_to_ignore_at_inference = ["cache", "losses", "routing"]

    vocab_size: int = 32000
    source_vocab_size: int = 0
    encoder_embed_dim: int = 512
    encoder_ffn_embed_dim: int = 2048
    encoder_layers: int = 6
    encoder_attention_heads: int = 8
    encoder_normalize_before: bool = False
    encoder_learned_pos: bool = False
    decoder_embed_dim: int = 0
    decoder_ffn_embed_dim: int = 0
    decoder_layers: int = 6
    decoder_attention_heads: int = 8
    decoder_normalize_before: bool = False
    decoder_learned_pos: bool = False
    decoder_input_dim: int = 0
    decoder_output_dim: int = 0
    no_decoder_final_norm: bool = False
    layernorm_embedding: bool = False
    no_scale_embedding: bool = False
    sinusoids: Literal["fairseq", "marian"] = "fairseq"
    padding_has_positions: bool = False
    output_bias: bool = False
    share_all_embeddings: bool = False
    share_decoder_input_output_embed: bool = False
    max_source_positions: int = 1024
    max_target_positions: int = 1024
    activation: str = "relu"
    dropout: Number = 0.1
    attention_dropout: Number = 0.0
    activation_dropout: Number = 0.0

    encoder_routing: Literal["none", "both", "vertical", "horizontal"] = "none"
    encoder_routing_layers: Optional[List[int]] = None
    decoder_routing: Literal["none", "horizontal"] = "none"
    routing_iterations: int = 3
    query_key_norm: Sides = "none"
    selective_attention: Sides = "none"
    past_future: Literal["none", "gdr", "clf", "attn"] = "none"
    past_future_capsules: int = 2
    redundant_capsules: int = 2
    past_future_capsule_dim: Optional[int] = None
    past_future_iterations: int = 3
    past_future_ffn_dim: Optional[int] = None
    global_representation: Literal["none", "capsule", "mean"] = "none"
    global_pooling: Literal["attentive", "mean", "concat"] = "attentive"
    global_capsules: int = 32
    global_capsule_dim: Optional[int] = None
    global_iterations: int = 3
    global_aggregation: Literal["gru", "none"] = "gru"
    global_gate: Literal["context", "none"] = "context"
    guided_heads: Literal["none", "bow", "bca", "both"] = "none"
    guided_reduction: Literal["mean", "sum", "printed"] = "mean"
    label_smoothing: Number = 0.0
    bow_weight: Number = 1.0
    bca_weight: Number = 1.0

    is_encoder_decoder: bool = True
    use_cache: bool = True
    bos_token_id: Optional[int] = 0
    pad_token_id: int = 1
    eos_token_id: Union[int, List[int], None] = 2
    decoder_start_token_id: int = 2

    @property
    def layer_types(self) -> List[str]:
        """The kinds of layers in a cache that transformers makes of this configuration."""
        changed = self.decoder_routing != "none" or self.selective_attention in ("decoder", "both")
        kind = LAYER_TYPE if changed or self.past_future != "none" else "full_attention"
        return [kind] * self.decoder_layers

    def validate_layer_type(self) -> None:
        """Do nothing: transformers knows no type of another package."""

    def get_text_config(self, *_: Any, **__: Any) -> "CapsuleConfig":
        """Return the configuration: it has both sides, under their own names."""
        return self

    @classmethod
    def preset(cls, name: str, **options: Any) -> "CapsuleConfig":
        """Return the configuration of a preset (`capsule_routing.presets`), with further options."""
        if name not in PRESETS:
            raise UserError(f"unknown preset {name}; the presets are {', '.join(PRESETS)}")
        return cls(**{**PRESETS[name], **options})

    def __post_init__(self, **options: Any) -> None:
        self._refuse_unknown(options)
        for name, other in (
            ("source_vocab_size", "vocab_size"),
            ("decoder_embed_dim", "encoder_embed_dim"),
            ("decoder_ffn_embed_dim", "encoder_ffn_embed_dim"),
            ("decoder_input_dim", "decoder_embed_dim"),
            ("decoder_output_dim", "decoder_embed_dim"),
        ):
            if not getattr(self, name):
                setattr(self, name, getattr(self, other))
        # transformers ties the weights that the model names only if this is true.
        tied = self.share_all_embeddings or self.share_decoder_input_output_embed
        if tied and not options.get("tie_word_embeddings", True):
            # A file may say so, of tables that were separated later, for example to quantise one of them.
            if self.transformers_version is None:
                raise UserError(TIED)
            del options["tie_word_embeddings"]
        options.setdefault("tie_word_embeddings", tied)
        super().__post_init__(**options)

    @classmethod
    def _refuse_unknown(cls, options: Dict[str, Any]) -> None:
        # What transformers writes into config.json or takes as an option although it is no field.
        further = {"model_type", "transformers_version", "auto_map", "name_or_path", "torch_dtype", "num_labels"}
        further |= {
            "output_attentions",
            "attn_implementation",
            "experts_implementation",
            "quantization_config",
            "tie_word_embeddings",
        }
        searched = GenerationConfig._get_default_generation_params()  # transformers drops them
        for name in options.keys() - further:
            if name in searched:
                raise UserError(f"{name} is an option of generate(); set it in model.generation_config")
            if not name.startswith("_"):
                close = get_close_matches(name, cls.__dataclass_fields__, 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise UserError(f"CapsuleConfig has no option {name}{hint}")

    def validate_options(self) -> None:
        """Raise a UserError if an option is out of range, or options contradict each other."""
        for name in ("encoder_layers", "decoder_layers", "routing_iterations", "past_future_capsules"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("redundant_capsules", "label_smoothing", "bow_weight", "bca_weight"):
            if not getattr(self, name) >= 0:
                raise UserError(f"{name} must be at least 0, not {getattr(self, name)}")
        for side in ("encoder", "decoder"):
            heads, size = getattr(self, f"{side}_attention_heads"), getattr(self, f"{side}_embed_dim")
            if size % heads:
                raise UserError(f"{side}_attention_heads {heads} must divide {side}_embed_dim {size}")
        if not set(self.encoder_routing_layers or ()) <= set(range(1, self.encoder_layers + 1)):
            raise UserError(f"encoder_routing_layers must be layers from 1 to {self.encoder_layers}")
        if self.encoder_routing != "none" and self.encoder_routing_layers == []:
            raise UserError("encoder_routing_layers has no layer; name layers, or set encoder_routing none")
        if self.guided_heads != "none" and self.past_future == "none":
            raise UserError(f"guided_heads {self.guided_heads} needs past_future gdr, clf or attn")
        if self.share_all_embeddings and self.source_vocab_size != self.vocab_size:
            raise UserError("share_all_embeddings needs source_vocab_size and vocab_size to be equal")
        if self.share_all_embeddings and self.encoder_embed_dim != self.decoder_input_dim:
            raise UserError("share_all_embeddings needs encoder_embed_dim and decoder_input_dim to be equal")
        if self.tie_word_embeddings and not (self.share_all_embeddings or self.share_decoder_input_output_embed):
            raise UserError(TIED)
        if self.tie_word_embeddings and self.decoder_input_dim != self.decoder_output_dim:
            raise UserError("shared embeddings need decoder_input_dim and decoder_output_dim to be equal")
        if self.global_representation != "none":
            if self.encoder_embed_dim != self.decoder_output_dim:
                raise UserError("global_representation needs encoder_embed_dim and decoder_output_dim to be equal")
            if self.global_aggregation == "gru" and self.encoder_layers < 2:
                raise UserError("global_aggregation gru needs at least 2 encoder layers; for 1 use none")
