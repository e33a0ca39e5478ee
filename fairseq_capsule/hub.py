"""Loading of trained models with fairseq's hub interface."""

import logging
import os
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List, Optional, Sequence, Union

from tqdm import tqdm

from fairseq_capsule.root_logger import unchanged_root_logger

with unchanged_root_logger():
    from fairseq import hub_utils

    from capsule_routing.text.folders import binarised_folder, preparations
    from fairseq_capsule.checkpoints.models import building, load_model, require_one_direction
    from fairseq_capsule.data.merges import require_codes
    from fairseq_capsule.data.tokenizer import PreparedText


class CapsuleHub(hub_utils.GeneratorHubInterface):
    """fairseq's interface to a trained model (`translate`, `encode`, …); it can read raw text as its data was prepared.

    `checkpoint` and `data` are the file and the folder that it was loaded from, as the caller named them, if known. The
    files of an ensemble are joined by colons.
    """

    checkpoint: Optional[str] = None
    data: Optional[str] = None

    def generate(self, *args: Any, **options: Any) -> Any:
        """Translate tokens. A sentence that is too long, or wrong parameters or options, raise a UserError."""
        with building(self.checkpoint, "it cannot translate this", "shorten the text, or give another model"):
            return super().generate(*args, **options)

    def read_as_prepared(self, data: Union[str, Path]) -> None:
        """Read and write raw text as the folder of the data was made, if a prepare script made it."""
        source, target = (getattr(self.task.cfg, f"{side}_lang", None) for side in ("source", "target"))
        sides = preparations(data, source, target) if source and target else None
        if sides is not None:
            self.tokenizer, self.bpe = PreparedText(*sides), None


def load(
    checkpoint: Union[str, Path, Sequence[Union[str, Path]]], data: Union[str, Path], **options: Any
) -> CapsuleHub:
    """Load a trained model of this package or of fairseq, or an ensemble, with the dictionaries of its data.

    Raw text is read and written as the data was prepared.

    Args:
        checkpoint: the file of the model, or the files of an ensemble: a list, or joined by colons. A UserError says
            if one is broken.
        data: the OUT of a prepare script or its `bin`, or a folder of fairseq-preprocess. Other words or another
            direction than those of the model's training raise a UserError.
        options: fairseq's options. With `tokenizer` or `bpe`, text is read as these say, not as the data was prepared.
    """
    files = _files(checkpoint)
    name = os.pathsep.join(map(str, files))
    binarised = binarised_folder(data).resolve()
    # Not hub_utils.from_pretrained: it splits names at a colon into several files. It also reads a file `code` next to
    # the checkpoint as its merges, even if the options name another file.
    with quiet_loading(files[0].name):
        require_one_direction(files)
        loaded = [load_model(file, binarised, options) for file in files]
        models = [model for model, _, _ in loaded]
        _, cfg, task = loaded[0]
        with building(name, "no tokeniser, BPE and search can be built from its options"):
            if cfg.bpe is not None and cfg.bpe._name == "subword_nmt":
                require_codes(cfg.bpe.bpe_codes)
            hub = CapsuleHub(cfg, task, models)
            if not {"tokenizer", "bpe"} & options.keys():
                hub.read_as_prepared(data)
            hub.detokenize(hub.remove_bpe(hub.apply_bpe(hub.tokenize("a"))))  # some read their files only now
            task.build_generator(models, cfg.generation)
    hub.checkpoint, hub.data = name, str(data)
    return hub


def _files(checkpoint: Union[str, Path, Sequence[Union[str, Path]]]) -> List[Path]:
    """Return the files of a model or an ensemble. A name that exists is one file, even with a colon."""
    if isinstance(checkpoint, (str, Path)):
        names = [checkpoint] if os.path.exists(checkpoint) else str(checkpoint).split(os.pathsep)
    else:
        names = list(checkpoint)
    return [Path(file) for file in names]


@contextmanager
def quiet_loading(name: str) -> Iterator[None]:
    """Show a progress bar while a checkpoint is loaded, and hide fairseq's log messages: its whole configuration.

    matplotlib would log every font when it draws the first picture, because fairseq sets the root logger to DEBUG.
    """
    fairseq, matplotlib = logging.getLogger("fairseq"), logging.getLogger("matplotlib")
    if matplotlib.level == logging.NOTSET:
        matplotlib.setLevel(logging.WARNING)
    level = fairseq.level
    fairseq.setLevel(logging.WARNING)
    try:
        bar = tqdm(desc=f"load {name}", total=1, unit=" checkpoint", leave=False, disable=None)
        with unchanged_root_logger(), bar:
            yield
            bar.update()
    finally:
        fairseq.setLevel(level)
