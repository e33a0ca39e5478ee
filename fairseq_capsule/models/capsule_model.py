"""What every model of the package adds to fairseq's, beside its parts."""

from pathlib import Path

from fairseq.models import BaseFairseqModel

from fairseq_capsule.checkpoints.hub import CapsuleHub, quiet_loading
from fairseq_capsule.data.dictionaries import keep_digests
from fairseq_capsule.errors import UserError
from fairseq_capsule.models.beams import KnowsBeams
from fairseq_capsule.models.memory import keep_memory


class CapsuleModel(BaseFairseqModel):
    """A mixin: the hint of a beam size, a clear word on another dictionary's checkpoint, and a hub to look inside."""

    @classmethod
    def build_model(cls, cfg, task):
        """As fairseq's; the task keeps a digest of its dictionaries, which goes into the checkpoints.

        Raises:
            UserError: the task has the state of a checkpoint that was trained with other dictionaries.
        """
        keep_digests(task)
        return super().build_model(cfg, task)

    @classmethod
    def from_pretrained(cls, model_name_or_path, checkpoint_file="model.pt", *args, **kwargs) -> CapsuleHub:
        """As fairseq's; what it gives has `inspect` too."""
        with quiet_loading(checkpoint_file):
            hub = super().from_pretrained(model_name_or_path, checkpoint_file, *args, **kwargs)
        loaded = CapsuleHub(hub.cfg, hub.task, hub.models)
        loaded.checkpoint = str(Path(model_name_or_path) / checkpoint_file)
        return loaded

    def set_num_updates(self, num_updates: int) -> None:
        """As fairseq's: what its trainer says before every update. On a CPU the process keeps its memory from here on.

        Importing the package, building a model and translating with what a hub gives change nothing of the process.
        """
        self._keep_memory_of_a_cpu()
        super().set_num_updates(num_updates)

    def set_beam_size(self, beam_size: int) -> None:
        """What a generator says before it decodes: how many neighbours of a batch are one sentence."""
        for part in self.decoder.modules():
            if isinstance(part, KnowsBeams):
                part.beam_size = beam_size

    def prepare_for_inference_(self, cfg) -> None:
        """As fairseq's, which says nothing of a beam that holds no hypothesis until it searches with it.

        On a CPU a command that was given the checkpoint (`--path`), such as fairseq-generate, keeps its memory from
        here on: it translates what it is given and ends.

        Raises:
            UserError: a beam size below 1.
        """
        beam = getattr(cfg.generation, "beam", 1)
        if beam < 1:
            raise UserError(f"--beam must be at least 1, not {beam}")
        if getattr(getattr(cfg, "common_eval", None), "path", None):
            self._keep_memory_of_a_cpu()
        super().prepare_for_inference_(cfg)

    def _keep_memory_of_a_cpu(self) -> None:
        if next(self.parameters()).device.type == "cpu":
            keep_memory()

    def load_state_dict(self, state_dict, strict=True, model_cfg=None, args=None):
        """As fairseq's, which would report another dictionary's embeddings as tensors that do not fit.

        Raises:
            UserError: the checkpoint was trained with a dictionary of another size, or has no weights that a module
                requires.
        """
        for side, name, part in (("source", "encoder", self.encoder), ("target", "decoder", self.decoder)):
            name += ".embed_tokens.weight"
            if name in state_dict and len(state_dict[name]) != part.embed_tokens.num_embeddings:
                raise UserError(
                    f"the checkpoint's {side} dictionary has {len(state_dict[name])} entries, the data's "
                    f"{part.embed_tokens.num_embeddings}: binarise the data with the dictionary of the checkpoint's run"
                )
        return super().load_state_dict(state_dict, strict, model_cfg, args)
