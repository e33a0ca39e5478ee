"""`fairseq-capsule picture`: what a model does with a sentence: its attention, or its PAST and FUTURE."""

import io
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Tuple

import torch
from fairseq import hub_utils
from matplotlib.figure import Figure
from torch import Tensor

from fairseq_capsule.analysis.encoder_attention import encoder_attention
from fairseq_capsule.analysis.past_future import past_future_assignment
from fairseq_capsule.analysis.plots import plot_assignment, plot_attention
from fairseq_capsule.errors import UserError
from fairseq_capsule.files import write_whole

SUFFIXES = (".png", ".svg", ".pdf")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=Path, help="a trained model")
    parser.add_argument("data", type=Path, help="the binarised data whose dictionaries it was trained with")
    parser.add_argument("--text", required=True, help="the source sentence, raw or as --codes and --tokenizer say")
    parser.add_argument("--codes", type=Path, help="subword-nmt codes to apply to the text")
    parser.add_argument("--tokenizer", choices=["moses", "space"], default="space", help="tokeniser of the text")
    parser.add_argument(
        "--show",
        choices=SHOWN,
        default="attention",
        help="the encoder's attention with and without routing (default), or which words are PAST, FUTURE or neither "
        "at each step of the model's own translation",
    )
    parser.add_argument("--layer", type=int, help="encoder layer, from 1 (default: the top one, as in the paper)")
    parser.add_argument("--out", type=Path, required=True, help="picture to write: .png, .svg or .pdf")


def run(args: Namespace) -> None:
    for path in filter(None, (args.checkpoint, args.data, args.codes)):
        if not path.exists():
            raise UserError(f"{path}: no such file or folder")
    if args.out.suffix not in SUFFIXES:
        raise UserError(f"--out {args.out}: its name must end in one of {', '.join(SUFFIXES)}")
    if not args.text.strip():
        raise UserError("--text: the sentence is empty")
    loaded = hub_utils.from_pretrained(
        str(args.checkpoint.parent),
        checkpoint_file=args.checkpoint.name,
        data_name_or_path=str(args.data.resolve()),
        tokenizer=args.tokenizer,
        **({"bpe": "subword_nmt", "bpe_codes": str(args.codes)} if args.codes else {}),
    )
    hub = hub_utils.GeneratorHubInterface(loaded["args"], loaded["task"], loaded["models"])
    model = hub.models[0]
    tokens = hub.encode(args.text)
    if len(tokens) > model.max_positions()[0]:
        raise UserError(f"--text: {len(tokens)} subwords are more than the model's {model.max_positions()[0]}")
    figure, summary = SHOWN[args.show](hub, tokens, args)
    picture = io.BytesIO()
    figure.savefig(picture, format=args.out.suffix[1:], dpi=110)
    write_whole(args.out, picture.getvalue())
    print(f"{args.out}: {summary}")


def _attention(hub: hub_utils.GeneratorHubInterface, tokens: Tensor, args: Namespace) -> Tuple[Figure, str]:
    explanations = encoder_attention(hub.models[0], tokens.unsqueeze(0))
    layer = len(explanations) if args.layer is None else args.layer
    if not 1 <= layer <= len(explanations):
        raise UserError(f"--layer must be from 1 to {len(explanations)}, not {layer}")
    words = [hub.src_dict[token] for token in tokens]
    with torch.no_grad():
        figure = plot_attention(explanations[layer - 1], words, f"Encoder layer {layer}, rows attend to columns")
    return figure, f"encoder layer {layer}, {explanations[0].after.size(1)} heads, {len(words)} subwords"


def _assignment(hub: hub_utils.GeneratorHubInterface, tokens: Tensor, args: Namespace) -> Tuple[Figure, str]:
    if args.layer is not None:
        raise UserError("--layer belongs to --show attention")
    translation = hub.generate(tokens, beam=5)[0]["tokens"]
    shares = past_future_assignment(hub.models[0], tokens, translation)
    source = [hub.src_dict[token] for token in tokens]
    target = [hub.tgt_dict[token] for token in translation]
    figure = plot_assignment(shares, source, target, "What is translated, step by step")
    return figure, f"{len(target)} steps, {len(source)} subwords; the translation: {hub.decode(translation)}"


SHOWN = {"attention": _attention, "assignment": _assignment}
