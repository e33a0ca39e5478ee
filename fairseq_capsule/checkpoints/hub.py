"""Trained models as fairseq's hub gives them, which can be looked into."""

import importlib
import logging
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, Optional, Union

from fairseq import hub_utils
from tqdm import tqdm

from fairseq_capsule.checkpoints.models import load_model
from fairseq_capsule.data.merges import require_codes


class CapsuleHub(hub_utils.GeneratorHubInterface):
    """fairseq's interface of a trained model (`translate`, `encode`, `generate`, …), and `inspect`.

    Attributes:
        checkpoint, data: the file and the folder that it was loaded from, as they were named; None where not known.
    """

    checkpoint: Optional[str] = None
    data: Optional[str] = None

    def inspect(self, *args: Any, **options: Any) -> Any:
        """What the model routes while it translates: `fairseq_capsule.inspector.inspect` with this hub."""
        # By name: the models, which give a hub, import nothing that looks into them.
        return importlib.import_module("fairseq_capsule.inspector").inspect(self, *args, **options)


def load(checkpoint: Union[str, Path], data: Union[str, Path], **options: Any) -> CapsuleHub:
    """A trained model, of this package or of fairseq's own, with the dictionaries of binarised data.

    Args:
        checkpoint, data: a file, and the folder that fairseq-preprocess made.
        options: fairseq's, such as `tokenizer`, `bpe` and `bpe_codes`.

    Raises:
        UserError: broken files, or dictionaries and a checkpoint that do not belong together.
    """
    if options.get("bpe_codes"):
        require_codes(options["bpe_codes"])
    checkpoint = Path(checkpoint)
    # Not hub_utils.from_pretrained: it takes a colon for a list of files, and a file `code` beside the checkpoint for
    # its merges, whatever the options say.
    with quiet_loading(checkpoint.name):
        model, cfg, task = load_model(checkpoint, Path(data).resolve(), options)
    hub = CapsuleHub(cfg, task, [model])
    hub.checkpoint, hub.data = str(checkpoint), str(data)
    return hub


@contextmanager
def quiet_loading(name: str) -> Iterator[None]:
    """Shows on a terminal that a checkpoint is being loaded, and nothing of what fairseq logs meanwhile.

    fairseq logs its whole configuration, and sets the root logger to DEBUG when it is imported, which would make
    matplotlib describe every font when it draws the first picture.
    """
    fairseq, matplotlib = logging.getLogger("fairseq"), logging.getLogger("matplotlib")
    if matplotlib.level == logging.NOTSET:
        matplotlib.setLevel(logging.WARNING)
    level = fairseq.level
    fairseq.setLevel(logging.WARNING)
    try:
        with tqdm(desc=f"load {name}", total=1, unit=" checkpoint", leave=False, disable=None) as bar:
            yield
            bar.update()
    finally:
        fairseq.setLevel(level)
