"""Measure the routing functions alone, as they are and under `torch.compile`.

    python benchmarks/routing_forms.py --device cuda --out routing.csv

`package` is the function of `capsule_routing.functions`, `compiled` the same under `torch.compile`: one graph for all
lengths, to which the conversion of bfloat16 to float32 belongs. Each row has the median milliseconds of the forward
pass and of forward and backward, and the peak memory of both. `ratio` is the time of forward and backward divided by
the package's. A batch has `--tokens` words in sentences of one length; the first tenth of the sentences has padding.
`first_pass_seconds` of `compiled` is the time of compilation.
"""

import argparse
import statistics
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List

import torch
from measure import alternate, environment, keep_memory, median_ratio, peak_memory, seconds, seeded
from rows import write_rows

from capsule_routing import functions as routing

ITERATIONS = 3
DTYPES = {"bf16": torch.bfloat16, "float32": torch.float32}
# Calls in a timed run, so that waiting for a GPU does not count.
REPEATS = {"cpu": 1, "cuda": 10}
COLUMNS = """function words sentences dtype form forward_ms both_ms ratio peak_mib memory_ratio first_pass_seconds error
    device torch fairseq python threads""".split()


def functions(backend: str) -> Dict[str, Dict[str, Callable[..., torch.Tensor]]]:
    """Return the forms of each routing: functions of the inputs and the padding mask."""

    def forms(name: str, **options) -> Dict[str, Callable[..., torch.Tensor]]:
        function = partial(getattr(routing, name), iterations=ITERATIONS, **options)
        return {
            "package": function,
            "compiled": torch.compile(function, fullgraph=True, dynamic=True, backend=backend),
        }

    return {
        "vertical": forms("vertical_routing"),
        "horizontal": forms("horizontal_routing"),
        "horizontal, causal": forms("horizontal_routing", causal=True),
        "dynamic": forms("dynamic_routing"),
    }


def inputs(name: str, words: int, args, dtype: torch.dtype):
    """Return logits `[B, H, L, L]`, or votes `[B, L, N, D]` of dynamic routing, 0 at padding, and the padding mask."""
    sentences = max(1, args.tokens // words)
    if name == "dynamic":
        tensor = torch.randn(sentences, words, args.capsules, args.capsule_dim)
    else:
        tensor = torch.randn(sentences, args.heads, words, words)
    mask = torch.zeros(sentences, words, dtype=torch.bool)
    mask[: max(1, sentences // 10), -3:] = True
    if name != "dynamic":
        tensor.masked_fill_(mask[:, None, None, :] | mask[:, None, :, None], 0)
    return tensor.to(args.device, dtype).requires_grad_(), mask.to(args.device)


def forward(form: Callable[..., Any], tensor: torch.Tensor, mask: torch.Tensor, repeats: int) -> torch.Tensor:
    for _ in range(repeats):
        result = form(tensor, padding_mask=mask)
    return result[0] if isinstance(result, tuple) else result


def forward_backward(form: Callable[..., Any], tensor: torch.Tensor, mask: torch.Tensor, repeats: int) -> None:
    for _ in range(repeats):
        result = forward(form, tensor, mask, 1)
        torch.autograd.grad(result, tensor, torch.ones_like(result))


def measure(name: str, forms: Dict[str, Callable[..., Any]], words: int, dtype: str, args) -> List[Dict[str, Any]]:
    with seeded(1):
        tensor, mask = inputs(name, words, args, DTYPES[dtype])
    rows: Dict[str, Dict[str, Any]] = {}
    runs = {}
    for form, function in forms.items():
        row = rows[form] = {"function": name, "words": words, "dtype": dtype, "form": form, **environment(args.device)}
        row["sentences"] = len(tensor)
        try:
            row["first_pass_seconds"] = seconds(partial(forward_backward, function, tensor, mask, 1), args.device)
            row["peak_mib"] = peak_memory(partial(forward_backward, function, tensor, mask, 1), args.device) / 2**20
            runs[form] = function
        except Exception as error:  # the other forms are still measured; `error` is in the result
            row["error"] = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    repeats = REPEATS[args.device]
    ways = {}
    for form, function in runs.items():
        ways[form, "forward"] = partial(forward, function, tensor, mask, repeats)
        ways[form, "both"] = partial(forward_backward, function, tensor, mask, repeats)
    times = alternate({" ".join(way): run for way, run in ways.items()}, args.rounds, args.device)
    for form in runs:
        for way in ("forward", "both"):
            rows[form][f"{way}_ms"] = 1000 * statistics.median(times[f"{form} {way}"]) / repeats
        if "package" in runs:
            rows[form]["ratio"] = median_ratio(times[f"{form} both"], times["package both"])
            rows[form]["memory_ratio"] = rows[form]["peak_mib"] / rows["package"]["peak_mib"]
    for form, row in rows.items():
        figures = row.get("error") or f"{row['both_ms']:8.3f} ms  {row['peak_mib']:7.0f} MiB"
        print(f"{name:18} {words:4} words  {dtype:8} {form:9} {figures}", flush=True)
    return list(rows.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[27, 50, 100])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument("--tokens", type=int, default=32768, help="words in a batch")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--capsules", type=int, default=6, help="output capsules of dynamic routing")
    parser.add_argument("--capsule-dim", type=int, default=512, help="size of a vote of dynamic routing")
    parser.add_argument("--backend", default="inductor", help="of torch.compile; aot_eager compiles no code")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="rows are appended to this CSV file")
    args = parser.parse_args()
    if args.device == "cpu":
        keep_memory()
    for dtype in args.dtypes:
        for name, forms in functions(args.backend).items():
            for words in args.lengths:
                write_rows(args.out, measure(name, forms, words, dtype, args), COLUMNS)


if __name__ == "__main__":
    main()
