"""Check that a model can teach on a data folder; print the languages and its maximum target length."""

import os
import sys

from fairseq.data.data_utils import infer_language_pair

import fairseq_capsule.tasks  # noqa: F401  registers the models of the checkpoints
from fairseq_capsule.checkpoints.loading import read_checkpoint
from fairseq_capsule.data.dictionaries import read_dictionary, refuse_other_dictionaries, refuse_other_languages
from fairseq_capsule.errors import UserError, one_line
from fairseq_capsule_lab.errors import name, place, whole


def check(teacher, data):
    source, target = infer_language_pair(data)
    if source is None or not os.path.isfile(f"{data}/train.{source}-{target}.{target}.bin"):
        raise UserError(f"{data}: no binarised training set in it; name the folder that fairseq-preprocess made")
    for path, what in ((teacher, "TEACHER"), (data, "DATA")):
        place(what, os.path.realpath(path))
    for language in (source, target):
        name(f"the language of a file in {data}", language)
    state = read_checkpoint(teacher)
    if not isinstance(state.get("model"), dict):
        raise UserError(f"{teacher}: it contains no model; give a checkpoint of fairseq")
    refuse_other_languages(teacher, state, source, target)
    dictionaries = (read_dictionary(f"{data}/dict.{language}.txt") for language in (source, target))
    refuse_other_dictionaries(teacher, state, *dictionaries)
    if os.path.exists(f"{data}/train1.{source}-{target}.{target}.bin"):
        raise UserError(f"{data}: its training set has several parts (train1.…); binarise it as one")
    config = (state.get("cfg") or {}).get("model") or state.get("args")
    option = config.get if isinstance(config, dict) else lambda name: getattr(config, name, None)
    return f"{source}-{target} {whole(f'{teacher}: max_target_positions', option('max_target_positions') or 1024)}"


if __name__ == "__main__":
    try:
        print(check(*sys.argv[1:]))
    except (UserError, OSError) as error:
        sys.exit(f"distill.sh: {one_line(str(error))}")
