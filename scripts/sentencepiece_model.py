"""Learn a SentencePiece model from texts, or split standard input into its pieces, separated by spaces."""

import argparse
import re
import sys

import sentencepiece

MOST_LINES = 400_000  # a random sample to learn from: it is kept in memory, and more lines change the pieces little
LONGEST = 4_192  # bytes; longer lines are not used for learning


def learn(args):
    sentencepiece.set_random_generator_seed(1)  # for the sample of lines
    with open(args.model, "wb") as model:
        sentencepiece.SentencePieceTrainer.train(
            input=args.texts,
            model_writer=model,
            model_type=args.type,
            vocab_size=args.size,
            hard_vocab_limit=False,  # a small text has fewer pieces than requested
            input_sentence_size=MOST_LINES,
            shuffle_input_sentence=True,
            max_sentence_length=LONGEST,
            # No normalisation: translations would differ from the references, in Chinese at every comma.
            normalization_rule_name="identity",
            minloglevel=1,
        )


def apply(args):
    pieces = sentencepiece.SentencePieceProcessor(model_file=args.model)
    for line in sys.stdin:
        print(*pieces.encode(line.rstrip("\n"), out_type=str))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    learning = commands.add_parser("learn")
    learning.add_argument("texts", nargs="+", metavar="TEXT")
    learning.add_argument("model", metavar="MODEL")
    learning.add_argument("--type", choices=["unigram", "bpe"], required=True)
    learning.add_argument("--size", type=int, required=True, help="largest number of pieces")
    learning.set_defaults(run=learn)
    applying = commands.add_parser("apply")
    applying.add_argument("model", metavar="MODEL")
    applying.set_defaults(run=apply)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    try:
        main()
    except (OSError, RuntimeError) as error:
        few = re.search(r"smaller than required_chars\. (\d+) vs (\d+)", str(error))
        if few:
            sys.exit(f"--merges {few[1]}: the text has {few[2]} characters, and each needs a piece: give more")
        sys.exit(str(error))
