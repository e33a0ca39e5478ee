"""`capsule_lstm`: fairseq's attentional LSTM ("RNMT") with PAST and FUTURE on top of its decoder."""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, field, make_dataclass
from typing import Any, Dict, Iterator, Optional, Tuple

from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel
from fairseq.models.lstm import LSTMDecoder, LSTMModel
from torch import Tensor

from fairseq_capsule.errors import UserError
from fairseq_capsule.models.capsule_model import CapsuleModel
from fairseq_capsule.models.flat_config import preset, register_presets, validated
from fairseq_capsule.models.past_future import (
    PastFuture,
    PastFutureConfig,
    build_past_future,
    check_past_future,
)

# Options of fairseq's that a preset must be able to turn off again, which a flag cannot, or that belong to a loss which
# is not ours.
WITHOUT = ("encoder_bidirectional", "adaptive_softmax_cutoff")


def _lstm_fields() -> Iterator[Tuple[str, Any, Any]]:
    """fairseq's LSTM has no dataclass: its options are read from its parser. None leaves a value to fairseq."""
    parser = ArgumentParser(add_help=False)
    LSTMModel.add_args(parser)
    for action in parser._actions:
        if action.dest not in WITHOUT:
            metadata = {"help": action.help}
            if action.nargs == 0:
                yield action.dest, bool, field(default=False, metadata=metadata)
            else:
                yield action.dest, Optional[action.type], field(default=None, metadata=metadata)


_LSTMOptions = make_dataclass(
    "_LSTMOptions", _lstm_fields(), bases=(FairseqDataclass,), namespace={"__module__": __name__}
)


@dataclass
class CapsuleLSTMConfig(PastFutureConfig, _LSTMOptions):
    """Every option of fairseq's LSTM but `--adaptive-softmax-cutoff` and `--encoder-bidirectional`, which is
    `--encoder-directions` here."""

    encoder_directions: int = field(
        default=2, metadata={"help": "2: the encoder reads in both directions; 1: forwards alone"}
    )
    max_source_positions: int = field(default=100000, metadata={"help": "max number of tokens in the source sequence"})
    max_target_positions: int = field(default=100000, metadata={"help": "max number of tokens in the target sequence"})

    def __post_init__(self):
        if self.encoder_directions not in (1, 2):
            raise UserError(f"--encoder-directions must be 1 or 2, not {self.encoder_directions}")
        check_past_future(self)

    def lstm_options(self) -> Namespace:
        """The options that make fairseq's `lstm` of the same dimensions."""
        ours = PastFutureConfig.__dataclass_fields__.keys() | {"encoder_directions"}
        options: Dict[str, Any] = {
            name: value for name, value in vars(self).items() if value is not None and name not in ours
        }
        return Namespace(**options, encoder_bidirectional=self.encoder_directions == 2, criterion=None)


class CapsuleLSTMDecoder(LSTMDecoder):
    """fairseq's LSTM decoder whose output takes PAST and FUTURE in.

    Args:
        past_future: that part.
        options: those of `LSTMDecoder`.
    """

    def __init__(self, past_future: PastFuture, **options):
        super().__init__(**options)
        for module in (self.dropout_in_module, self.dropout_out_module):
            module.module_name = "LSTMDecoder"  # the name that --retain-dropout-modules knows
        self.past_future = past_future

    def forward(self, prev_output_tokens, encoder_out=None, incremental_state=None, src_lengths=None):
        """As fairseq's; what comes with the logits is a dict, of the attention `attn` and of `past_future`."""
        features, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        return self.output_layer(features), extra

    def extract_features(self, prev_output_tokens, encoder_out=None, incremental_state=None):
        # fairseq's decoder takes an empty state for the first step: nothing may be kept in it before.
        features, attention = super().extract_features(prev_output_tokens, encoder_out, incremental_state)
        source, padding_mask = encoder_out[0], encoder_out[3].t()
        features, routed = self.past_future(features, source, padding_mask, incremental_state)
        return features, {"attn": [attention], "past_future": routed}

    @property
    def output_embeddings(self) -> Tensor:
        """`E` `[V, C]`, which the bag-of-words loss shares."""
        return self.embed_tokens.weight if self.share_input_output_embed else self.fc_out.weight


class CapsuleLSTMModel(CapsuleModel, LSTMModel):
    """fairseq's attentional LSTM with PAST and FUTURE (Zheng et al. 2019, Table 1); with them off, fairseq's own."""

    add_args = classmethod(BaseFairseqModel.add_args.__func__)

    @classmethod
    def build_model(cls, cfg, task):
        """Build the model of a preset's config.

        Raises:
            UserError: an option has a value that is not allowed.
        """
        config = validated(cfg, CapsuleLSTMConfig)
        options = config.lstm_options()
        try:
            model = super().build_model(options, task)  # which fills in what is left to fairseq
        except ValueError as error:
            raise UserError(str(error)) from error
        model.cfg = config
        past_future = build_past_future(config, model.encoder.output_units, options.decoder_out_embed_dim)
        if past_future is None:
            return model
        model.decoder = CapsuleLSTMDecoder(
            past_future,
            dictionary=model.decoder.dictionary,
            embed_dim=options.decoder_embed_dim,
            hidden_size=options.decoder_hidden_size,
            out_embed_dim=options.decoder_out_embed_dim,
            num_layers=options.decoder_layers,
            dropout_in=options.decoder_dropout_in,
            dropout_out=options.decoder_dropout_out,
            attention=model.decoder.attention is not None,
            encoder_output_units=model.encoder.output_units,
            pretrained_embed=model.decoder.embed_tokens,
            share_input_output_embed=options.share_decoder_input_output_embed,
            max_target_positions=options.max_target_positions,
        )
        return model


register_presets(
    CapsuleLSTMModel,
    {
        "capsule_lstm": CapsuleLSTMConfig,
        "gdr_lstm": preset(CapsuleLSTMConfig, past_future="gdr", guided_heads="both"),
    },
)
