"""What Moses leaves of a text: python experiments/benchmarks/round_trip.py FILE.LANG...

Prints for each file its lines and the BLEU of a sample of them after Moses' tokeniser and detokeniser, as
`scripts/prepare.sh` measures it to choose between Moses and SentencePiece. The text has one sentence a line.
"""

import sys
from pathlib import Path

from capsule_routing.text.preparation import TextPreparation
from fairseq_capsule_lab.corpora.round_trip import evenly_spaced, round_trip


def main() -> None:
    for name in sys.argv[1:]:
        lines = Path(name).read_text(encoding="utf-8").splitlines()
        language = name.rpartition(".")[2]
        score = round_trip(TextPreparation(language, "moses"), evenly_spaced(lines))
        print(f"{language}\t{len(lines)}\t{score:.1f}", flush=True)


if __name__ == "__main__":
    main()
