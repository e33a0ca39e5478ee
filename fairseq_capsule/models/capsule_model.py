"""What every model of the package adds to fairseq's, beside its parts."""

from fairseq_capsule.errors import UserError


class CapsuleModel:
    """A mixin: the hint of a beam size, and a clear word on another dictionary's checkpoint."""

    def set_beam_size(self, beam_size: int) -> None:
        """Pass a generator's beam size on."""
        part = getattr(self.decoder, "past_future", None)
        if part is not None:
            part.set_beam_size(beam_size)

    def load_state_dict(self, state_dict, strict=True, model_cfg=None, args=None):
        """As fairseq's, which would report another dictionary's embeddings as tensors that do not fit.

        Raises:
            UserError: the checkpoint was trained with a dictionary of another size.
        """
        for side, name, part in (("source", "encoder", self.encoder), ("target", "decoder", self.decoder)):
            name += ".embed_tokens.weight"
            if name in state_dict and len(state_dict[name]) != part.embed_tokens.num_embeddings:
                raise UserError(
                    f"the checkpoint's {side} dictionary has {len(state_dict[name])} entries, the data's "
                    f"{part.embed_tokens.num_embeddings}: binarise the data with the dictionary of the checkpoint's run"
                )
        return super().load_state_dict(state_dict, strict, model_cfg, args)
