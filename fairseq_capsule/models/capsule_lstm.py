"""`capsule_lstm`: fairseq's attentional LSTM ("RNMT") with PAST and FUTURE after its decoder."""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, make_dataclass
from typing import Any, Dict, Iterator, Optional, Tuple

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models.lstm import LSTMDecoder, LSTMEncoder, LSTMModel
from torch import Tensor

from capsule_routing.errors import UserError
from capsule_routing.modules import compile_routing
from fairseq_capsule.mechanisms import Sizes, Source, Target
from fairseq_capsule.mechanisms.past_future import PastFutureConfig
from fairseq_capsule.mechanisms.registry import active_mechanisms, check_mechanisms, known_to, mechanisms, option_names
from fairseq_capsule.models.base import CapsuleModel, FeaturesOnly, refuse_left_padded_targets
from fairseq_capsule.models.outputs import encoder_states
from fairseq_capsule.models.parts import RunsParts, attach
from fairseq_capsule.options import compile_option, setting

# fairseq options that are left out. A preset must be able to turn off the first one, which a flag cannot do. The second
# one belongs to a loss that this package does not support.
WITHOUT = ("encoder_bidirectional", "adaptive_softmax_cutoff")


AT_LEAST_1 = (
    "encoder_embed_dim",
    "encoder_hidden_size",
    "encoder_layers",
    "decoder_embed_dim",
    "decoder_hidden_size",
    "decoder_layers",
    "decoder_out_embed_dim",
)
PROBABILITIES = (
    "dropout",
    "encoder_dropout_in",
    "encoder_dropout_out",
    "decoder_dropout_in",
    "decoder_dropout_out",
)
RANGES: Dict[str, Dict[str, Any]] = {
    **dict.fromkeys(AT_LEAST_1, {"lowest": 1}),
    **dict.fromkeys(PROBABILITIES, {"probability": True}),
}


def _lstm_fields() -> Iterator[Tuple[str, Any, Any]]:
    """Yield the options of fairseq's LSTM, read from its parser. The default None leaves a value to fairseq."""
    parser = ArgumentParser(add_help=False)
    LSTMModel.add_args(parser)
    for action in parser._actions:
        if action.dest not in WITHOUT:
            kind, default = (bool, False) if action.nargs == 0 else (Optional[action.type], None)
            yield action.dest, kind, setting(default, action.help or "", **RANGES.get(action.dest, {}))


_LSTM: Any = make_dataclass("_LSTM", _lstm_fields(), bases=(FairseqDataclass,), namespace={"__module__": __name__})


@dataclass
class CapsuleLSTMConfig(PastFutureConfig, _LSTM):
    """All options of fairseq's LSTM with two exceptions, and those of PAST and FUTURE, which are off.

    `--encoder-directions` replaces `--encoder-bidirectional`. `--adaptive-softmax-cutoff` is not supported.
    """

    encoder_directions: int = setting(2, "2: the encoder reads in both directions; 1: only forwards")
    max_source_positions: int = setting(100000, "max number of tokens in the source sequence", lowest=1)
    max_target_positions: int = setting(100000, "max number of tokens in the target sequence", lowest=1)
    compile_routing: bool = compile_option()

    def __post_init__(self) -> None:
        if self.encoder_directions not in (1, 2):
            raise UserError(f"--encoder-directions must be 1 or 2, not {self.encoder_directions}")
        check_mechanisms(self)

    def lstm_options(self) -> Namespace:
        """Return the options of fairseq's `lstm` with the same dimensions."""
        known = [mechanism for mechanism in mechanisms() if known_to(mechanism, self)]
        ours = option_names(*(mechanism.options for mechanism in known))
        ours |= {"encoder_directions", "compile_routing"}
        options = {name: value for name, value in vars(self).items() if value is not None and name not in ours}
        return Namespace(**options, encoder_bidirectional=self.encoder_directions == 2, criterion=None)


class CapsuleLSTMEncoder(LSTMEncoder):
    """fairseq's LSTM encoder. Its states and its mask are in the order of the tokens, padded on the same side."""

    def forward(self, src_tokens: Tensor, *args: Any, **kwargs: Any) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
        """Encode sources `[B, I]` to states `[I, B, C]`, hidden and cell states, and a padding mask `[I, B]`."""
        states, hidden, cell, _ = super().forward(src_tokens, *args, **kwargs)
        padding_mask = src_tokens.eq(self.padding_idx)
        # An LSTM reads the words before the padding, so fairseq has moved padding on the left to the right. No test
        # whether there is any: a GPU would have to wait for its result.
        length, moved = src_tokens.size(1), padding_mask.sum(1) * padding_mask[:, 0]
        places = torch.arange(length, device=states.device) - moved.unsqueeze(1)
        states = states.gather(0, (places % length).t().unsqueeze(-1).expand_as(states))
        return states, hidden, cell, padding_mask.t()


class CapsuleLSTMDecoder(RunsParts, LSTMDecoder):
    """fairseq's LSTM decoder, with its arguments, and the parts of the mechanisms that a preset's config turns on."""

    def __init__(self, config: Any, **options: Any):
        super().__init__(**options)
        for module in (self.dropout_in_module, self.dropout_out_module):
            module.module_name = "LSTMDecoder"  # the name that --retain-dropout-modules knows
        self.mechanism_parts = {}
        sizes = Sizes(options["encoder_output_units"], options["out_embed_dim"], 0, 0)
        for mechanism in active_mechanisms(config):
            attach(self, "decoder", mechanism, mechanism.decoder(config, sizes))

    def extract_features(self, prev_output_tokens: Any, encoder_out: Any = None, incremental_state: Any = None) -> Any:
        """Return states `[B, T, C]` and a dict with the attention `attn` and the outputs of the mechanisms."""
        # fairseq's decoder recognises the first step by an empty state, so the mechanisms cache nothing before this.
        features, attention = super().extract_features(prev_output_tokens, encoder_out, incremental_state)
        source = Source(*encoder_states(encoder_out))
        target = self.run_parts(Target(features, incremental_state=incremental_state), source)
        return target.states, {"attn": [attention], **target.outputs}

    @property
    def output_embeddings(self) -> Tensor:
        """`E` `[V, C]`, which the bag-of-words loss shares."""
        return self.embed_tokens.weight if self.share_input_output_embed else self.fc_out.weight


class CapsuleLSTMModel(FeaturesOnly, CapsuleModel, LSTMModel):
    """fairseq's attentional LSTM with mechanisms. With all of them off it is identical to fairseq's."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> Any:
        """Build the model of a preset's config. Raises a UserError if an option has a value that is not allowed."""
        refuse_left_padded_targets(task)
        config = cls.checked(cfg)
        options = config.lstm_options()
        model = super().build_model(options, task)  # this fills in the values that are left to fairseq
        model.cfg = config
        # fairseq has no hook for the encoder. A new one would draw other initial values for the decoder.
        model.encoder.__class__ = CapsuleLSTMEncoder
        if not active_mechanisms(config):
            return model
        model.decoder = CapsuleLSTMDecoder(
            config,
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
        if config.compile_routing:
            compile_routing(model)
        return model
