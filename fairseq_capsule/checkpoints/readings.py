"""Readings of the papers: options that change what the same paper means, and that older checkpoints do not have."""

from argparse import Namespace
from typing import Any, Dict, List, Mapping

from fairseq_capsule.errors import UserError

# For each such option: an option that marks the models that have it, and the value of models trained without it.
READINGS = {
    "decoder_norms": ("decoder_context", "after"),
    "guided_reduction": ("guided_heads", "sum"),
}


def with_readings(state: Dict[str, Any]) -> Dict[str, Any]:
    """Add the options that an older checkpoint lacks, with the values that it was trained with.

    Args:
        state: what torch loaded from the file. It is changed in place. fairseq fills in its own defaults later, and
            ignores `--model-overrides` of options that are missing.
    """
    for options in _model_options(state):
        values = vars(options) if isinstance(options, Namespace) else options
        for name, (marker, before) in READINGS.items():
            if isinstance(values, dict) and marker in values:
                values.setdefault(name, before)
    return state


def readings_of(state: Mapping[str, Any]) -> Dict[str, str]:
    """Return the readings of the model of a checkpoint, the result of `with_readings`."""
    return readings(next(filter(None, _model_options(state)), {}))


def readings(options: Any) -> Dict[str, str]:
    """Return the readings of a model, by option; without those that have no effect in it.

    Args:
        options: of the model: a config, a mapping or a Namespace.
    """
    values = options if isinstance(options, Mapping) else vars(options)
    return {
        name: str(values[name])
        for name, (marker, _) in READINGS.items()
        if name in values and str(values.get(marker)) != "none"
    }


def in_words(chosen: Mapping[str, str]) -> str:
    """Return readings as options of the command line."""
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in chosen.items())


def refuse_other_readings(path: str, state: Mapping[str, Any], options: Any) -> None:
    """Refuse to continue the training of a checkpoint with another reading.

    Parameters may have the same names and shapes in both, so that fairseq would load them.

    Args:
        path: the file, for the message.
        state: the result of `with_readings`.
        options: those of the model that is trained.

    Raises:
        UserError: a reading differs.
    """
    old, own = readings_of(state), readings(options)
    for name in sorted(old.keys() & own.keys()):
        if old[name] != own[name]:
            raise UserError(
                f"{path}: it was trained with {in_words({name: old[name]})}, but the model has "
                f"{in_words({name: own[name]})}; continue with {old[name]}, or train anew in another --save-dir"
            )


def _model_options(state: Mapping[str, Any]) -> List[Any]:
    config = state.get("cfg")
    return [config.get("model") if isinstance(config, Mapping) else None, state.get("args")]
