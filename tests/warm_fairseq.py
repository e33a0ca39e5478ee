"""The server of `tests/processes.py` imports this once: it composes the options of a command of fairseq.

Its forks then know the text of each option. To parse these 250 texts takes half of the time of a short command.
"""

import gc
import warnings

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from tests import hydra_store  # noqa: F401  it keeps what was parsed

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    parser = options.get_training_parser()
    convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, ["data", "--arch", "transformer"]))
gc.freeze()  # forks collect only their own objects
