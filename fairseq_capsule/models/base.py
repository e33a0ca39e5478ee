"""Behaviour that all models of the package share."""

import itertools
import logging
from pathlib import Path
from typing import Any, Dict

from fairseq.models import BaseFairseqModel

from capsule_routing.errors import UserError
from fairseq_capsule.checkpoints.belonging import keep_belonging
from fairseq_capsule.hub import CapsuleHub, quiet_loading
from fairseq_capsule.mechanisms.attaching import loss_heads
from fairseq_capsule.options import validated

logger = logging.getLogger(__name__)


class CapsuleModel(BaseFairseqModel):
    """A mixin for the models of the package."""

    # fairseq's models override this and add the options of their nested configs.
    add_args: Any = classmethod(BaseFairseqModel.add_args.__func__)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> Any:
        """Build the model as fairseq does, and store the words and the direction of the task in the checkpoints."""
        keep_belonging(task)
        return super().build_model(cfg, task)

    @classmethod
    def checked(cls, cfg: Any) -> Any:
        """Convert a config to the dataclass of its preset. A value that is not allowed raises a UserError."""
        return validated(cfg, getattr(cls, "__dataclass"))  # fairseq stores it when it registers the class

    @classmethod
    def from_pretrained(
        cls, model_name_or_path: Any, checkpoint_file: str = "model.pt", *args: Any, **kwargs: Any
    ) -> CapsuleHub:
        """Load a model as fairseq does. The returned hub interface also has `inspect`."""
        with quiet_loading(checkpoint_file):
            hub = super().from_pretrained(model_name_or_path, checkpoint_file, *args, **kwargs)
        loaded = CapsuleHub(hub.cfg, hub.task, hub.models)
        loaded.checkpoint = str(Path(model_name_or_path) / checkpoint_file)
        if not {"tokenizer", "bpe"} & kwargs.keys():
            loaded.read_as_prepared(hub.task.cfg.data)
        return loaded

    def set_num_updates(self, num_updates: int) -> None:
        """Called by fairseq before each step of a training, and when a checkpoint is loaded.

        After the first update, a warning names the losses of the mechanisms that the criterion does not compute: the
        routing criterion sets `losses_computed` of the decoder. Neither the model nor fairseq's own tasks see the
        criterion.
        """
        super().set_num_updates(num_updates)
        if num_updates == 0:
            self.decoder.losses_computed = False
        if num_updates != 1 or getattr(self.decoder, "losses_computed", True):
            return
        self.decoder.losses_computed = True  # warn once: with --update-freq this is called again
        if not any(parameter.requires_grad for parameter in self.parameters()):  # only a probe of the model is trained
            return
        for mechanism, losses in itertools.groupby(loss_heads(self), lambda head: head[0]):
            missing = ", ".join(name for _, name, _ in losses)
            logger.warning(
                f"{mechanism.name}: the criterion does not compute the losses {missing}, so they are off; "
                "--criterion label_smoothed_cross_entropy_with_routing_losses computes them"
            )

    def set_beam_size(self, beam_size: int) -> None:
        """Called by a generator before it decodes: `beam_size` consecutive rows of a batch are one sentence."""
        self.decoder.beam_size = beam_size

    def load_state_dict(self, state_dict: Dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load parameters as fairseq does, but report a dictionary of another size as such, not as a wrong shape."""
        for side, name, part in (("source", "encoder", self.encoder), ("target", "decoder", self.decoder)):
            name += ".embed_tokens.weight"
            if name not in state_dict:
                continue
            size = part.embed_tokens.num_embeddings
            if len(state_dict[name]) != size:
                sizes = f"has {len(state_dict[name])} entries, but the data's has {size}"
                raise UserError(f"the checkpoint's {side} dictionary {sizes}; name data of its words")
        return super().load_state_dict(state_dict, *args, **kwargs)


class FeaturesOnly(BaseFairseqModel):
    """A mixin for an encoder-decoder model: its forward pass has fairseq's option `features_only`."""

    def forward(
        self, src_tokens: Any, src_lengths: Any, prev_output_tokens: Any, features_only: bool = False, **options: Any
    ) -> Any:
        """Compute as fairseq does. With `features_only` the first item is what the output layer reads, `[B, T, C]`."""
        if not features_only:
            return super().forward(src_tokens, src_lengths, prev_output_tokens, **options)
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths, **options)
        return self.decoder.extract_features(prev_output_tokens, encoder_out, **options)


def refuse_left_padded_targets(task: Any) -> None:
    """Raise a UserError if a task pads targets on the left, because an LSTM decoder would read the padding first."""
    if getattr(task.cfg, "left_pad_target", False):
        raise UserError("--left-pad-target does not work with an LSTM decoder; leave the option out")
