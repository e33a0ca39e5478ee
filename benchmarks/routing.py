"""Measure the cost of routing the logits of self-attention, forward and backward, by length.

    python benchmarks/routing.py --json

It compares these systems at 128 to 2,048 words:

- `routed`: the encoder attention of the capsule-Transformer (vertical and horizontal routing)
- `causal`: its decoder attention (horizontal routing under the causal mask)
- `fairseq`: fairseq's attention
- `explicit`: fairseq's attention when it returns its weights; the memory is compared with it
- the literal loops of the paper, only forward and only at 128 words

The last line is a JSON object. `exponent` is the growth of the encoder's time between 256 and 1,024 words, and
`causal_exponent` the growth of the decoder's time between 512 and 2,048. `causal_ratio` is the decoder's time divided
by fairseq's at 1,024.
"""

import argparse
import json
import math
import statistics
import sys
from functools import partial
from pathlib import Path

import torch
from fairseq.modules import MultiheadAttention
from measure import alternate, environment, keep_memory, peak_memory, seconds, seeded

from capsule_routing.modules import AttentionRouting
from fairseq_capsule.models.attention import SplitAttention

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.references import routing as literal  # the tests check against these loops


class Step:
    """Forward and backward of a self-attention over one batch."""

    def __init__(self, attention, length, batch, embed_dim, device, **options):
        self.attention = attention.to(device)
        self.x = torch.randn(length, batch, embed_dim, device=device, requires_grad=True)
        self.options = options

    def __call__(self):
        output = self.attention(self.x, self.x, self.x, **self.options)[0]
        output.sum().backward()


def loops(attention, x, heads):
    """Route the same logits with the literal nested Python loops over positions."""
    with torch.no_grad():
        length, batch, embed_dim = x.shape
        q, k = (f(x).view(length, batch, heads, -1).permute(1, 2, 0, 3) for f in (attention.q_proj, attention.k_proj))
        logits = q @ k.transpose(2, 3) * (embed_dim // heads) ** -0.5
        literal.vertical_routing(logits, 3)
        literal.horizontal_routing(logits, 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[128, 256, 512, 1024, 2048])
    parser.add_argument("--embed-dim", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--batch", type=int, default=1, help="sentences")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--no-loops", action="store_true", help="skip the literal loops, which take minutes")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()

    if args.device == "cpu":
        keep_memory()
    rows = []
    for length in args.lengths:
        with seeded(1):
            shape = length, args.batch, args.embed_dim, args.device
            plain = MultiheadAttention(args.embed_dim, args.heads, self_attention=True)
            routed, causal = (SplitAttention(args.embed_dim, args.heads) for _ in range(2))
            routed.attach("attention_routing", "logits", AttentionRouting(args.heads))
            causal.attach("attention_routing", "logits", AttentionRouting(args.heads, vertical=False, causal=True))
            future = torch.full((length, length), float("-inf"), device=args.device).triu(1)
            runs = {
                "routed": Step(routed, *shape, need_weights=False),
                "causal": Step(causal, *shape, need_weights=False, attn_mask=future),
                "fairseq": Step(plain, *shape, need_weights=False),
                "explicit": Step(plain, *shape, need_weights=True),
            }
        times = alternate(runs, args.rounds, args.device)
        row = {"length": length, **{name: statistics.median(times[name]) for name in runs}}
        row["peak_memory_bytes"] = {name: peak_memory(run, args.device) for name, run in runs.items()}
        peak = row["peak_memory_bytes"]
        row["memory_ratio"] = peak["routed"] / peak["explicit"]
        row["causal_memory_ratio"] = peak["causal"] / peak["explicit"]
        if length == 128 and not args.no_loops:
            row["loops"] = seconds(partial(loops, routed, runs["routed"].x, args.heads), args.device)
        rows.append(row)
        loop_text = f", loops, only forward, {row['loops']:.1f} s" if "loops" in row else ""
        print(
            f"{length:5} words: routed {1e3 * row['routed']:8.1f} ms, causal {1e3 * row['causal']:8.1f} ms, fairseq "
            f"{1e3 * row['fairseq']:7.1f} ms, explicit weights {1e3 * row['explicit']:7.1f} ms, memory "
            f"{row['memory_ratio']:.2f} and {row['causal_memory_ratio']:.2f} of explicit weights{loop_text}"
        )
    report = {"rows": rows, "settings": vars(args), **environment(args.device)}
    at = {row["length"]: row for row in rows}
    if {256, 1024} <= set(at):
        report["exponent"] = math.log(at[1024]["routed"] / at[256]["routed"]) / math.log(4)
        print(f"time grows with length to the power of {report['exponent']:.2f} between 256 and 1,024 words")
    if {512, 2048} <= set(at):
        report["causal_exponent"] = math.log(at[2048]["causal"] / at[512]["causal"]) / math.log(4)
        print(f"causal: to the power of {report['causal_exponent']:.2f} between 512 and 2,048 words")
    if 1024 in at:
        report["causal_ratio"] = at[1024]["causal"] / at[1024]["fairseq"]
        print(f"causal: {report['causal_ratio']:.1f} times fairseq's attention at 1,024 words")
    for row in rows:
        if "loops" not in row:
            continue
        report["faster_than_loops"] = row["loops"] / row["routed"]
        print(f"at 128 words {report['faster_than_loops']:.0f} times faster than the loops (without their backward)")
    if args.json:
        print(json.dumps(report))


if __name__ == "__main__":
    main()
