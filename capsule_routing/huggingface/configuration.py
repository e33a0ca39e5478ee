"""The configuration of an exported Transformer: `config.json`."""

from typing import Any, List, Optional

from transformers import PreTrainedConfig


class CapsuleConfig(PreTrainedConfig):
    """The options of a Transformer with any of the mechanisms. Those of `fairseq-train` keep their names and meaning.

    Attributes:
        source_vocab_size, vocab_size: numbers of words of the source and of the target dictionary.
        encoder_layers, decoder_layers: numbers of layers, after pruning.
        encoder_routing_layers: the encoder's layers that route, counted from 1, after pruning.
        activation: a name of an activation in transformers.
        decoder_input_dim, decoder_output_dim: sizes of the decoder's embeddings and of what its output layer reads.
    """

    model_type = "capsule_transformer"
    attribute_map = {
        "hidden_size": "decoder_embed_dim",
        "num_hidden_layers": "decoder_layers",
        "num_attention_heads": "decoder_attention_heads",
    }

    source_vocab_size: int = 4
    vocab_size: int = 4
    encoder_embed_dim: int = 512
    encoder_ffn_embed_dim: int = 2048
    encoder_layers: int = 6
    encoder_attention_heads: int = 8
    encoder_normalize_before: bool = False
    encoder_learned_pos: bool = False
    decoder_embed_dim: int = 512
    decoder_ffn_embed_dim: int = 2048
    decoder_layers: int = 6
    decoder_attention_heads: int = 8
    decoder_normalize_before: bool = False
    decoder_learned_pos: bool = False
    decoder_input_dim: int = 512
    decoder_output_dim: int = 512
    no_decoder_final_norm: bool = False
    layernorm_embedding: bool = False
    no_scale_embedding: bool = False
    share_all_embeddings: bool = False
    share_decoder_input_output_embed: bool = False
    max_source_positions: int = 1024
    max_target_positions: int = 1024
    activation: str = "relu"
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0

    encoder_routing: str = "none"
    encoder_routing_layers: Optional[List[int]] = None
    decoder_routing: str = "none"
    routing_iterations: int = 3
    query_key_norm: str = "none"
    selective_attention: str = "none"
    past_future: str = "none"
    past_future_capsules: int = 2
    redundant_capsules: int = 2
    past_future_capsule_dim: Optional[int] = None
    past_future_iterations: int = 3
    past_future_ffn_dim: Optional[int] = None
    global_representation: str = "none"
    global_pooling: str = "attentive"
    global_capsules: int = 32
    global_capsule_dim: Optional[int] = None
    global_iterations: int = 3
    global_aggregation: str = "gru"
    global_gate: str = "context"

    is_encoder_decoder: bool = True
    use_cache: bool = True
    bos_token_id: int = 0
    pad_token_id: int = 1
    eos_token_id: int = 2
    decoder_start_token_id: int = 2

    def __post_init__(self, **options: Any) -> None:
        # transformers ties the weights that the model names only if this is true.
        options["tie_word_embeddings"] = self.share_all_embeddings or self.share_decoder_input_output_embed
        super().__post_init__(**options)
