"""Digests of tensors, texts and files. Times, speeds and paths of a text are replaced, so that two runs are equal."""

import hashlib
import re

TEXTS = {"", ".csv", ".html", ".js", ".json", ".md", ".out", ".part", ".svg", ".tsv", ".txt", ".yaml"}
LEFT_OUT = {".log", ".xz"}  # progress and times; an archive, whose files are recorded when it is unpacked
# What differs between two runs of the same program.
CHANGING = [
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?([.,]\d+)?(Z|[+-]\d\d:\d\d)?"), "TIME"),
    (re.compile(r"127\.0\.0\.1:\d{4,5}"), "127.0.0.1:PORT"),
    (re.compile(r"after \d+ ms"), "after SHORT"),
    (re.compile(r"PLACE/tmp/[\w.-]+"), "PLACE/tmp/NAME"),
    (re.compile(r'"milliseconds":\d+'), '"milliseconds":SHORT'),
    (re.compile(r"in [\d.]+s \([\d.]+ sentences/s, [\d.]+ tokens/s\)"), "in SHORT"),
    # A checkpoint has the time of its training, so its hash differs, and so does the size of an archive with the hash.
    (re.compile(r"\b(checkpoint|teacher|generate\.out)(\s)[0-9a-f]{12}\b"), r"\1\2HASH"),
    (re.compile(r"runs, [\d,]+ bytes"), "runs, SIZE bytes"),
    (re.compile(r"\b(image|[hmp])[0-9a-f]{10}\b"), r"\1ID"),  # Matplotlib draws them in an SVG
    (re.compile(r'"(wps|ups|train_wall|wall|gb_free)": "[^"]*",? ?'), ""),
]


# Snakemake numbers and prints jobs in any order, with the time and a list in any order of the inputs that it updates.
JOBS = "Building DAG of jobs"
ANY_ORDER = re.compile(r"\[|\s+(reason|jobid):")


def of_bytes(content):
    return hashlib.sha256(content).hexdigest()


def of_tensor(tensor):
    """Return shape, type, root mean square and SHA-256, in one string."""
    values = tensor.detach().contiguous()
    size = values.double().square().mean().sqrt().item() if values.numel() else 0.0
    kind = str(values.dtype).removeprefix("torch.")
    return f"{list(values.shape)} {kind} rms {size:.9g} {of_bytes(values.view(-1).numpy().tobytes())}"


def normalised(text, places):
    """Replace paths by their names in `places`, and what changes between two runs by words."""
    for path, name in places.items():
        text = text.replace(path, name)
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    if JOBS in text:
        text = "\n".join(sorted(line for line in text.splitlines() if not ANY_ORDER.match(line)))
    return text


def of_checkpoint(path):
    """Return the digests of the parameters, and one of the optimiser's state."""
    import torch

    state = torch.load(path, map_location="cpu", weights_only=False)
    parameters = {**state["model"], **(state.get("criterion") or {})}
    return {
        **{name: of_tensor(value) for name, value in parameters.items()},
        "updates": [past["num_updates"] for past in state.get("optimizer_history") or []],
        "optimiser": of_bytes(repr(_leaves(state.get("last_optimizer_state"))).encode()),
    }


def _leaves(state):
    """Replace the tensors in nested dictionaries and lists by their digests."""
    if isinstance(state, dict):
        return {name: _leaves(value) for name, value in state.items()}
    if isinstance(state, (list, tuple)):
        return [_leaves(value) for value in state]
    return of_tensor(state) if hasattr(state, "detach") else state
