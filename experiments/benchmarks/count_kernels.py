"""Count the kernels of a training step and of a decoding step, for each architecture and fairseq's model.

    python experiments/benchmarks/count_kernels.py --json

On a GPU the number of kernels determines the time of a small model. The benchmark counts the operations that torch
dispatches to its CPU kernels, without views. For some of them, such as a layer of an LSTM, torch has fused kernels on a
GPU. Each architecture has 6+6 layers and is narrow. The number does not depend on the width, if a head is larger than
half of a sentence.

A training step is the loss of three sentences of 20 words, forward and backward, with all guided losses of the
architecture. There is no dropout and no padding. With padding, torch's LSTM on a CPU runs separate kernels for each
word. A decoding step is the decoder's call for the 20th word of 5 hypotheses of one sentence. The last
line is a JSON object with `training` and `decoding` for each architecture and for its `baseline`.
"""

import argparse
import itertools
import json
from collections import Counter
from typing import Callable, Dict

import torch
from fairseq.models import MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY
from measure import environment, seeded
from systems import (
    baseline_of,
    baseline_options,
    build,
    build_criterion,
    build_task,
    collated,
    draw_pairs,
    preset_options,
)
from torch.utils._python_dispatch import TorchDispatchMode

LAYERS, WORDS, BEAM = 6, 20, 5
NARROW = {
    **{f"{side}_{name}": 64 for side in ("encoder", "decoder") for name in ("embed_dim", "ffn_embed_dim")},
    **{f"{side}_{name}": 64 for side in ("encoder", "decoder") for name in ("hidden_size", "out_embed_dim")},
    **{f"{side}_attention_heads": 2 for side in ("encoder", "decoder")},
    **{f"{side}_layers": LAYERS for side in ("encoder", "decoder")},
    **dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0),
    **dict.fromkeys(("encoder_dropout_in", "encoder_dropout_out", "decoder_dropout_in", "decoder_dropout_out"), 0.0),
}

# Views that their schema does not mark as views, and queries of a value or a type.
FREE = {"aten::_unsafe_view", "aten::unsafe_split", "aten::_local_scalar_dense", "aten::promote_types"}


class Kernels(TorchDispatchMode):
    """While active, count in `counts` the dispatched operations that are not views, by name."""

    def __init__(self):
        super().__init__()
        self.counts: Counter = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name
        if not (function.is_view or name in FREE):
            self.counts[name] += 1
        return function(*args, **(kwargs or {}))


def count(run: Callable[[], object]) -> Counter:
    with Kernels() as kernels:
        run()
    return kernels.counts


def narrow_options(arch: str, of: str) -> Dict[str, object]:
    """Return the options of an architecture of this package, or of fairseq's model `arch` with the size of `of`."""
    names = MODEL_DATACLASS_REGISTRY[of].__dataclass_fields__
    narrow = {name: value for name, value in NARROW.items() if name in names}
    if arch == of:
        return preset_options(of, **narrow)
    return {**baseline_options(of, **({} if of.startswith(("capsnmt", "simple")) else narrow)), **NARROW}


class Steps:
    """A model's training step and decoding step.

    Args:
        arch: an architecture of this package or of fairseq.
        of: the architecture of this package that sets the sizes; `arch` by default.
    """

    def __init__(self, arch: str, of: str = ""):
        with seeded(1):
            task = build_task(100)
            options = narrow_options(arch, of or arch)
            self.model = build(arch, task, **options)
            self.criterion = build_criterion(task, options if arch == (of or arch) else {})
            pairs = list(itertools.islice(draw_pairs(task, WORDS), 3))
        self.batch, self.sentence = collated(task, pairs, "cpu"), collated(task, pairs[:1], "cpu")

    def train(self) -> None:
        self.model.train()
        self.model.zero_grad()
        self.criterion(self.model, self.batch)[0].backward()

    @torch.no_grad()
    def decode(self) -> Callable[[], object]:
        """Decode all words except the last, and return a function that runs the last step."""
        self.model.eval()
        if hasattr(self.model, "set_beam_size"):
            self.model.set_beam_size(BEAM)
        source = self.sentence["net_input"]
        encoded = self.model.encoder(source["src_tokens"], source["src_lengths"])
        encoded = self.model.encoder.reorder_encoder_out(encoded, torch.zeros(BEAM, dtype=torch.long))
        state: Dict[str, object] = {}
        words = source["prev_output_tokens"].expand(BEAM, -1)

        def step(length: int = WORDS) -> object:
            return self.model.decoder(words[:, :length], encoder_out=encoded, incremental_state=state)

        for length in range(1, WORDS):
            step(length)
        return torch.no_grad()(step)


def kernels_of(arch: str, of: str = "") -> Dict[str, int]:
    """Count the kernels of `training` and of `decoding`. The arguments are those of `Steps`."""
    steps = Steps(arch, of)
    steps.train()  # one-time work of the first step is not counted
    return {"training": sum(count(steps.train).values()), "decoding": sum(count(steps.decode()).values())}


def architectures() -> list:
    """Return all architectures of the package."""
    return sorted(n for n in MODEL_DATACLASS_REGISTRY if MODEL_REGISTRY[n].__module__.startswith("fairseq_capsule."))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archs", nargs="+", default=architectures(), choices=architectures(), metavar="ARCH")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()
    report: Dict[str, object] = {}
    baselines: Dict[str, Dict[str, int]] = {}
    for arch in args.archs:
        name = baseline_of(arch)
        if name not in baselines:
            baselines[name] = kernels_of(name, of=arch)
            print(f"{name:28} training {baselines[name]['training']:6}   decoding {baselines[name]['decoding']:6}")
        found = kernels_of(arch)
        report[arch] = {**found, "baseline": {"arch": name, **baselines[name]}}
        print(f"{arch:28} training {found['training']:6}   decoding {found['decoding']:6}")
    if args.json:
        print(json.dumps({"kernels": report, **environment("cpu")}))


if __name__ == "__main__":
    main()
