"""What every model of the package adds to fairseq's, beside its parts."""

from fairseq_capsule.errors import UserError
from fairseq_capsule.hub import CapsuleHub, quiet_loading
from fairseq_capsule.models.beams import KnowsBeams
from fairseq_capsule.models.flat_config import option

# Weights of agreements: they exist where there is more than one iteration. Part → their names, what sets the number,
# what else does without them.
AGREEMENTS = {
    "decoder.past_future.routing.": ("agreement_", "past_future_iterations", ", or another --past-future"),
    "encoder.aggregation.": ("score.", "aggregation_iterations", ", or --aggregation-scoring votes"),
}


class CapsuleModel:
    """A mixin: the hint of a beam size, a clear word on another dictionary's checkpoint, and a hub to look inside."""

    @classmethod
    def from_pretrained(cls, model_name_or_path, checkpoint_file="model.pt", *args, **kwargs) -> CapsuleHub:
        """As fairseq's; what it gives has `inspect` too."""
        with quiet_loading(checkpoint_file):
            hub = super().from_pretrained(model_name_or_path, checkpoint_file, *args, **kwargs)
        return CapsuleHub(hub.cfg, hub.task, hub.models)

    def set_beam_size(self, beam_size: int) -> None:
        """What a generator says before it decodes: how many neighbours of a batch are one sentence."""
        for part in self.decoder.modules():
            if isinstance(part, KnowsBeams):
                part.beam_size = beam_size

    def load_state_dict(self, state_dict, strict=True, model_cfg=None, args=None):
        """As fairseq's, which would report another dictionary's embeddings as tensors that do not fit.

        A model may have another number of iterations than its checkpoint: with one, it leaves the agreements' weights.

        Raises:
            UserError: the checkpoint was trained with a dictionary of another size, or with one iteration, without
                what the model's further ones need.
        """
        for side, name, part in (("source", "encoder", self.encoder), ("target", "decoder", self.decoder)):
            name += ".embed_tokens.weight"
            if name in state_dict and len(state_dict[name]) != part.embed_tokens.num_embeddings:
                raise UserError(
                    f"the checkpoint's {side} dictionary has {len(state_dict[name])} entries, the data's "
                    f"{part.embed_tokens.num_embeddings}: binarise the data with the dictionary of the checkpoint's run"
                )
        for part, (agreements, iterations, otherwise) in AGREEMENTS.items():
            there = {name for name in state_dict if name.startswith(part)}
            trained = {name for name in there if name.startswith(part + agreements)}
            wanted = any(name.startswith(part + agreements) for name in self.state_dict())
            if strict and wanted and there and not trained:
                raise UserError(
                    f"{option(iterations)}: the checkpoint has no weights of agreements, which more than one iteration "
                    f"needs; only 1 can be taken{otherwise}"
                )
            if trained and getattr(self.cfg, iterations) == 1:
                state_dict = {name: value for name, value in state_dict.items() if name not in trained}
        return super().load_state_dict(state_dict, strict, model_cfg, args)
