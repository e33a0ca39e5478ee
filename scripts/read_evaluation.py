"""Convert an evaluation set of NIST, a source file and a file of four translations.

Writes PREFIX.zh, PREFIX.en, PREFIX.en1, PREFIX.en2 and PREFIX.en3, one segment per line, in the order of the source.
"""

import sys

from texts import read_segments

REFERENCES = 4


def read_evaluation(source, references):
    """Return the segments of the source and those of each translation.

    Raises:
        ValueError: there are no segments, not four translations, or a translation has no segment for one of the source.
    """
    texts = {(document, segment): text for _, document, segment, text in read_segments(source)}
    if not texts:
        raise ValueError(f"{source}: it has no <seg>; give a source file in mteval's format")
    translations = {}
    for translator, document, segment, text in read_segments(references):
        translations.setdefault(translator, {})[document, segment] = text
    if len(translations) != REFERENCES:
        raise ValueError(
            f"{references}: {len(translations)} translations, not {REFERENCES}; give the file of all references"
        )
    for translator, found in translations.items():
        for document, segment in texts:
            if (document, segment) not in found:
                raise ValueError(
                    f"{references}: {translator} has no segment {segment} of document {document}: fetch it again"
                )
    return list(texts.values()), [[found[key] for key in texts] for found in translations.values()]


def main():
    source, references, prefix = sys.argv[1:]
    chinese, translations = read_evaluation(source, references)
    suffixes = ["zh", "en", *(f"en{number}" for number in range(1, REFERENCES))]
    for suffix, lines in zip(suffixes, [chinese, *translations]):
        with open(f"{prefix}.{suffix}", "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(str(error))
