"""Behaviour that all models of the package share."""

from pathlib import Path

from fairseq.models import BaseFairseqModel

from fairseq_capsule.data.dictionaries import keep_digests
from fairseq_capsule.errors import UserError
from fairseq_capsule.hub import CapsuleHub, quiet_loading
from fairseq_capsule.models.beams import KnowsBeams


class CapsuleModel(BaseFairseqModel):
    """A mixin for the models of the package.

    It passes the beam size to the decoder, reports a checkpoint with another dictionary clearly, and returns a hub
    interface with `inspect`.
    """

    @classmethod
    def build_model(cls, cfg, task):
        """Build the model as fairseq does, and store digests of the task's dictionaries in the checkpoints.

        Raises:
            UserError: the task has the state of a checkpoint that was trained with other dictionaries.
        """
        keep_digests(task)
        return super().build_model(cfg, task)

    @classmethod
    def from_pretrained(cls, model_name_or_path, checkpoint_file="model.pt", *args, **kwargs) -> CapsuleHub:
        """Load a model as fairseq does. The returned hub interface also has `inspect`."""
        with quiet_loading(checkpoint_file):
            hub = super().from_pretrained(model_name_or_path, checkpoint_file, *args, **kwargs)
        loaded = CapsuleHub(hub.cfg, hub.task, hub.models)
        loaded.checkpoint = str(Path(model_name_or_path) / checkpoint_file)
        return loaded

    def set_beam_size(self, beam_size: int) -> None:
        """Called by a generator before it decodes: `beam_size` consecutive rows of a batch are one sentence."""
        for part in self.decoder.modules():
            if isinstance(part, KnowsBeams):
                part.beam_size = beam_size

    def prepare_for_inference_(self, cfg) -> None:
        """Prepare for generation as fairseq does, and check the beam size, which fairseq checks only when it searches.

        Raises:
            UserError: the beam size is below 1.
        """
        beam = getattr(cfg.generation, "beam", 1)
        if beam < 1:
            raise UserError(f"--beam must be at least 1, not {beam}")
        super().prepare_for_inference_(cfg)

    def load_state_dict(self, state_dict, strict=True, model_cfg=None, args=None):
        """Load parameters as fairseq does, but report a dictionary of another size as such.

        fairseq would only report shapes that do not match.

        Raises:
            UserError: the checkpoint was trained with a dictionary of another size, has an embedding that is not a
                matrix, or has no weights for a module that requires them.
        """
        for side, name, part in (("source", "encoder", self.encoder), ("target", "decoder", self.decoder)):
            name += ".embed_tokens.weight"
            if name not in state_dict:
                continue
            if not state_dict[name].dim():
                raise UserError(f"the checkpoint's {name} is not a matrix; train or copy it again")
            if len(state_dict[name]) != part.embed_tokens.num_embeddings:
                raise UserError(
                    f"the checkpoint's {side} dictionary has {len(state_dict[name])} entries, but the data's has "
                    f"{part.embed_tokens.num_embeddings}; binarise the data with the checkpoint's dictionary"
                )
        return super().load_state_dict(state_dict, strict, model_cfg, args)
