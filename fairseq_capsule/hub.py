"""Loading of trained models with fairseq's hub interface, extended by `inspect`."""

import importlib
import logging
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Optional, Union

from tqdm import tqdm

from fairseq_capsule.root_logger import unchanged_root_logger

with unchanged_root_logger():
    from fairseq import hub_utils

    from fairseq_capsule.checkpoints.models import building, load_model
    from fairseq_capsule.data.merges import require_codes


class CapsuleHub(hub_utils.GeneratorHubInterface):
    """fairseq's interface to a trained model (`translate`, `encode`, `generate`, …), with `inspect`.

    `checkpoint` and `data` are the file and the folder that it was loaded from, as the caller named them, if known.
    """

    checkpoint: Optional[str] = None
    data: Optional[str] = None

    def generate(self, *args: Any, **options: Any) -> Any:
        """Translate tokens. A sentence that is too long, or wrong parameters or options, raise a UserError."""
        with building(self.checkpoint, "it cannot translate this", "shorten the text, or give another model"):
            return super().generate(*args, **options)

    def inspect(self, *args: Any, **options: Any) -> Any:
        """Show the routing of a translation. Calls `fairseq_capsule_lab.pages.inspect` with this hub."""
        # Imported here, because the models import this module and must not import the inspector.
        return importlib.import_module("fairseq_capsule_lab.pages").inspect(self, *args, **options)


def load(checkpoint: Union[str, Path], data: Union[str, Path], **options: Any) -> CapsuleHub:
    """Load a trained model of this package or of fairseq, with the dictionaries of binarised data.

    Args:
        checkpoint: the file of the model. A UserError says if it is broken.
        data: the folder that fairseq-preprocess wrote. Dictionaries of another model raise a UserError.
        options: fairseq's options, such as `tokenizer`, `bpe` and `bpe_codes`.
    """
    checkpoint = Path(checkpoint)
    # Not hub_utils.from_pretrained: it splits names at a colon into several files. It also reads a file `code` next to
    # the checkpoint as its merges, even if the options name another file.
    with quiet_loading(checkpoint.name):
        model, cfg, task = load_model(checkpoint, Path(data).resolve(), options)
        with building(checkpoint, "no tokeniser, BPE and search can be built from its options"):
            if cfg.bpe is not None and cfg.bpe._name == "subword_nmt":
                require_codes(cfg.bpe.bpe_codes)
            hub = CapsuleHub(cfg, task, [model])
            hub.detokenize(hub.remove_bpe(hub.apply_bpe(hub.tokenize("a"))))  # some read their files only now
            task.build_generator([model], cfg.generation)
    hub.checkpoint, hub.data = str(checkpoint), str(data)
    return hub


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
