"""What train.sh has to know of a configuration and its overrides before a training starts.

    plan_training.py CONFIG PROCESSES TOKENS [key=value ...]

prints, a line each: how the accumulation is to be set (nothing where the configuration's holds), the effective batch in
words, the last update, the seed, and then `KEY VALUE` for every setting that a run folder is bound to. TOKENS is the
effective batch that is asked for, 0 where none is.
"""

import json
import sys
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

TOLERANCE = 0.05  # of the effective batch, for which the accumulation is a whole number
# What train.sh sets, and what sets it there; a run folder is not bound to these.
OWN = {
    "task.data": "DATA",
    "checkpoint.save_dir": "OUT",
    "common.user_dir": "the plugin beside the scripts",
    "common.cpu": "--gpus 0",
    "common.fp16": "--precision",
    "common.bf16": "--precision",
    "distributed_training": "--gpus, --processes and --nodes",
    "hydra": "train.sh",
}


def configured(path, overrides, own):
    """The configuration with its overrides, which are Hydra's, and without what is `own`."""
    parsed = OverridesParser.create().parse_overrides(overrides)
    # A name without a point chooses a piece of the configuration (size=big), all others set a value of it.
    pieces = [override for override in parsed if "." not in override.key_or_group]
    with initialize_config_dir(str(Path(path).resolve().parent), version_base="1.1"):
        config = compose(Path(path).stem, [override.input_line for override in pieces])
    OmegaConf.set_struct(config, False)
    for override in (override for override in parsed if override not in pieces):
        key = override.key_or_group
        for name, place in own.items():
            if f"{key}.".startswith(f"{name}."):
                raise ValueError(f"{override.input_line}: that is set by {place}; leave it out")
        if override.is_delete() or override.is_sweep_override():
            raise ValueError(f"{override.input_line}: give one value, key=value")
        OmegaConf.update(config, key, override.value(), force_add=True)
    for name in own:
        OmegaConf.update(config, name, None, force_add=True)
    return config


def accumulation(config, processes, wanted):
    """What makes an effective batch of `wanted` tokens, or the configuration's accumulation; and the batch in words."""
    size, unit = OmegaConf.select(config, "dataset.max_tokens"), "tokens"
    if not size:
        size, unit = OmegaConf.select(config, "dataset.batch_size"), "sentences"
    if not size:
        raise ValueError("no size of a batch in it: give dataset.max_tokens=N")
    step = size * processes
    times = OmegaConf.select(config, "optimization.update_freq") or [1]
    if isinstance(times, int):
        raise ValueError(f"optimization.update_freq wants a list, [{times}]")
    times = list(times)
    if wanted:
        if unit != "tokens":
            raise ValueError(f"--effective-tokens {wanted}: batches are of dataset.batch_size={size} sentences here")
        times = [max(1, int(wanted / step + 0.5))]
        if abs(times[0] * step - wanted) > TOLERANCE * wanted:
            fitting = round(wanted / processes / -(-wanted // step))
            raise ValueError(
                f"--effective-tokens {wanted} cannot be met: {processes} × dataset.max_tokens={size} is {step} tokens, "
                f"and no multiple of that is near; dataset.max_tokens={fitting} has one"
            )
    made = ", ".join(str(step * number) for number in times)
    batch = f"{size} {unit} × {processes} × accumulation {', '.join(map(str, times))} = {made} {unit}"
    if wanted and times[0] * step != wanted:
        batch += f" (rounded: {wanted} were asked for)"
    return times, batch


def settings(config, prefix=""):
    """`KEY VALUE` of everything that is set."""
    for key, value in config.items():
        name = f"{prefix}{key}"
        if value == "???":
            raise ValueError(f"{name} is to be given: {name}=... behind OUT")
        if isinstance(value, dict):
            yield from settings(value, f"{name}.")
        elif value is not None:
            yield f"{name} {value if isinstance(value, str) else json.dumps(value)}"


def plan(path, processes, tokens, *overrides):
    wanted = int(tokens)
    own = {**OWN, "optimization.update_freq": "--effective-tokens"} if wanted else OWN
    config = configured(path, overrides, own)
    times, batch = accumulation(config, int(processes), wanted)
    head = [
        f"optimization.update_freq={times}" if wanted else "",
        batch,
        str(OmegaConf.select(config, "optimization.max_update") or 0),
        str(OmegaConf.select(config, "common.seed") or 1),
    ]
    if wanted:  # the machine decides of which parts the batch is made
        OmegaConf.update(config, "dataset.max_tokens", None)
    bound = f"effective-tokens {wanted}" if wanted else f"batch {batch.partition(' = ')[2]}"
    return [*head, *settings(OmegaConf.to_container(config, resolve=True)), bound]


if __name__ == "__main__":
    try:
        print("\n".join(plan(*sys.argv[1:])))
    except (ValueError, OSError, HydraException, OmegaConfBaseException, YAMLError) as error:
        sys.exit(f"train.sh: {sys.argv[1]}: {str(error).splitlines()[0]}")
