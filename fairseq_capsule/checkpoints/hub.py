"""Trained models as fairseq's hub gives them, which can be looked into.

The only door from the models to the room that looks into them: it is opened when somebody asks.
"""

import logging
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Iterator, List, Optional, Union

from fairseq import hub_utils
from tqdm import tqdm

from fairseq_capsule.data.merges import require_codes

if TYPE_CHECKING:
    from fairseq_capsule.inspector.inspection import Inspection


class CapsuleHub(hub_utils.GeneratorHubInterface):
    """fairseq's interface of a trained model (`translate`, `encode`, `generate`, …), and `inspect`.

    Attributes:
        checkpoint, data: the file and the folder that it was loaded from, as they were named; None where not known.
    """

    checkpoint: Optional[str] = None
    data: Optional[str] = None

    def inspect(
        self,
        sentences: Union[str, List[str]],
        beam: int = 5,
        against: Optional[hub_utils.GeneratorHubInterface] = None,
    ) -> List["Inspection"]:
        """What the model routes while it translates sentences.

        Args:
            sentences: raw text, as `translate` takes it.
            beam: of the translation.
            against: another model of the same dictionaries, which reads the same translation.

        Returns:
            An `Inspection` for each sentence: its arrays by name, `.plot()`, `.save()` and `.save_html()`.

        Raises:
            UserError: a sentence that is empty or too long, or a model of other dictionaries.
        """
        from fairseq_capsule.inspector.inspection import inspect
        from fairseq_capsule.inspector.sentences import sentences_of_text

        lines = [sentences] if isinstance(sentences, str) else sentences
        return list(inspect(self, sentences_of_text(self, lines), beam=beam, against=against))


def load(checkpoint: Union[str, Path], data: Union[str, Path], **options) -> CapsuleHub:
    """A trained model, of this package or of fairseq's own, with the dictionaries of binarised data.

    Args:
        checkpoint, data: a file, and the folder that fairseq-preprocess made.
        options: fairseq's, such as `tokenizer`, `bpe` and `bpe_codes`.

    Raises:
        UserError: broken files, or dictionaries and a checkpoint that do not belong together.
    """
    from fairseq_capsule.checkpoints.models import load_model

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
