"""Translations with their reference, in the formats of a prepared corpus, of fairseq-generate and of comet-score."""

import json

REFERENCES = [
    'Er fragt: "Gut & schön?", und geht.',
    "Die U-Bahn fährt am Rot-Kreuz-Platz vorbei.",
    "Ein Hund läuft über die grüne Wiese.",
    "Zwei Kinder spielen mit einem roten Ball im Sand.",
]

# An output of fairseq-generate: batches in order of length, several hypotheses, and log lines.
GENERATED = """\
2024-01-01 00:00:00 | INFO | fairseq_cli.generate | loading model(s) from checkpoint_best.pt
S-2\tA dog runs across the green meadow .
T-2\tEin Hund läuft über die grüne Wiese .
H-2\t-0.3\tEin Hund läuft über die gr@@ üne Wiese .
D-2\t-0.3\tEin Hund läuft über die gr@@ üne Wiese .
P-2\t-0.3 -0.3
H-2\t-0.9\tEine Katze schläft .
D-2\t-0.9\tEine Katze schläft .
S-0\tHe asks : &quot; Good &amp; nice ? &quot; , and goes .
T-0\tEr fragt : &quot; Gut &amp; schön ? &quot; , und geht .
H-0\t-0.5\tEr fragt : &quot; Gut &amp; schön ? &quot; , und geht .
D-0\t-0.5\tEr fragt : &quot; Gut &amp; schön ? &quot; , und geht .
S-3\tTwo children play with a red ball in the sand .
T-3\tZwei Kinder spielen mit einem roten Ball im Sand .
H-3\t-0.7\tZwei Kinder spielen mit dem roten Ball .
D-3\t-0.7\tZwei Kinder spielen mit dem roten Ball .
S-1\tThe underground passes Rot-Kreuz-Platz .
T-1\tDie U-Bahn fährt am Rot-Kreuz-Platz vorbei .
H-1\t-0.4\tDie U-Bahn fährt am Rot-Kreuz-Platz .
D-1\t-0.4\tDie U-Bahn fährt am Rot-Kreuz-Platz .
Generate test with beam=5: BLEU4 = 75.00, 90.0/80.0/70.0/60.0 (BP=1.000, ratio=1.000, syslen=1, reflen=1)
"""
TRANSLATIONS = [
    'Er fragt: "Gut & schön?", und geht.',
    "Die U-Bahn fährt am Rot-Kreuz-Platz.",
    "Ein Hund läuft über die grüne Wiese.",
    "Zwei Kinder spielen mit dem roten Ball.",
]


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def write_comet(path, sources, references, scored):
    """Write scores as `comet-score --to_json` of unbabel-comet 2.2.7 does.

    Args:
        scored: by the name of each file of translations, its lines and their scores.
    """
    content = {
        name: [
            {"src": source, "mt": line, "ref": reference, "COMET": score}
            for source, line, reference, score in zip(sources, lines, references, scores, strict=True)
        ]
        for name, (lines, scores) in scored.items()
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, indent=4)
    return path
