"""`fairseq-capsule picture`: a sentence's encoder self-attention, with and without routing."""

import io
from argparse import ArgumentParser, Namespace
from pathlib import Path

import torch
from fairseq import hub_utils

from fairseq_capsule.analysis.encoder_attention import encoder_attention
from fairseq_capsule.analysis.plots import plot_attention
from fairseq_capsule.errors import UserError
from fairseq_capsule.files import write_whole

SUFFIXES = (".png", ".svg", ".pdf")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=Path, help="a trained model")
    parser.add_argument("data", type=Path, help="the binarised data whose dictionaries it was trained with")
    parser.add_argument("--text", required=True, help="the source sentence, raw or as --codes and --tokenizer say")
    parser.add_argument("--codes", type=Path, help="subword-nmt codes to apply to the text")
    parser.add_argument("--tokenizer", choices=["moses", "space"], default="space", help="tokeniser of the text")
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
    explanations = encoder_attention(model, tokens.unsqueeze(0))
    layer = len(explanations) if args.layer is None else args.layer
    if not 1 <= layer <= len(explanations):
        raise UserError(f"--layer must be from 1 to {len(explanations)}, not {layer}")
    words = [hub.src_dict[token] for token in tokens]
    with torch.no_grad():
        figure = plot_attention(explanations[layer - 1], words, f"Encoder layer {layer}, rows attend to columns")
    picture = io.BytesIO()
    figure.savefig(picture, format=args.out.suffix[1:], dpi=110)
    write_whole(args.out, picture.getvalue())
    print(f"{args.out}: encoder layer {layer}, {explanations[0].after.size(1)} heads, {len(words)} subwords")
