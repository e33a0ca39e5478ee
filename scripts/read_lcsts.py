"""Convert a file of LCSTS to cleaned pairs, PREFIX.text and PREFIX.summary, one per line.

The file is a sequence of documents, not one XML document:

    <doc id=0>
        <human_label>5</human_label>      only PART II and III
        <summary>
            …
        </summary>
        <short_text>
            …
        </short_text>
    </doc>
"""

import argparse
import contextlib
import re
import sys

from one_line import one_line
from texts import BROKEN, decoded, require_unbroken

FIELD = re.compile(r"<(human_label|summary|short_text)>")
OPENED = re.compile(r"\ufeff?\s*<doc id=\"?(\w+)\"?>")


def documents(path):
    """Yield (id, fields) of each document."""
    name, content = None, []
    with open(path, "rb") as file:
        for number, encoded in enumerate(file, 1):
            line = decoded(path, number, encoded)
            opened = OPENED.match(line)
            if opened and name is None:
                name, content = opened[1], []
            elif opened:
                break
            elif name is not None and line.strip() == "</doc>":
                yield name, fields_of("".join(content))
                name = None
            else:
                content.append(line)
    if name is not None:
        raise ValueError(f"{path}, doc {name}: has no </doc>, so the file may be incomplete; fetch it again")


def fields_of(document):
    """Return {name: text} of the fields that have an end. Tags inside a field are text."""
    found, end, endless = {}, 0, set()
    for tag in FIELD.finditer(document):
        name = tag[1]
        if tag.start() < end or name in endless:
            continue
        closed = document.find(f"</{name}>", tag.end())
        if closed < 0:
            endless.add(name)  # so no later one has an end: a search for each would take quadratic time
            continue
        found[name], end = document[tag.end() : closed], closed
    return found


def pairs(path, least):
    """Yield (text, summary) of the documents with at least the human score `least`.

    0 takes all documents, also those without a score. It yields None for a document with broken characters.

    Raises:
        ValueError: `least` is not 0 and a chosen document has broken characters. At the end: a document has no score,
            text or summary.
    """
    wrong = []
    for name, fields in documents(path):
        score = one_line(fields.get("human_label", ""))
        if least and not score.isdecimal():
            wrong.append(f"doc {name}: <human_label> is '{score}', not a score: fix it, or remove the doc")
            continue
        if least and int(score) < least:
            continue
        text, summary = (fields.get(field, "") for field in ("short_text", "summary"))
        if least:
            require_unbroken(f"{path}, doc {name}", text + summary)
        elif BROKEN.search(text + summary):
            yield None
            continue
        text, summary = one_line(text), one_line(summary)
        if text and summary:
            yield text, summary
        else:
            empty = "summary" if text else "short_text"
            wrong.append(f"doc {name}: no characters in its <{empty}> after cleaning: remove the doc")
    if wrong:
        raise ValueError(f"{path}, {wrong[0]}" + (f" (and {len(wrong) - 1} more docs)" if wrong[1:] else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", metavar="FILE")
    parser.add_argument("prefix", metavar="PREFIX")
    parser.add_argument("--score", type=int, default=0, help="smallest score of a pair; 0: all pairs")
    parser.add_argument("--limit", type=int, default=0, help="largest number of pairs; 0: all")
    args = parser.parse_args()
    written = dropped = 0
    outputs = (open(f"{args.prefix}.{language}", "w", encoding="utf-8") for language in ("text", "summary"))
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(output) for output in outputs]
        for pair in pairs(args.path, args.score):
            if pair is None:
                dropped += 1
                continue
            for line, file in zip(pair, files):
                print(line, file=file)
            written += 1
            if written == args.limit:
                break
    if not written:
        raise ValueError(f"{args.path}: it has no pairs; give a file of LCSTS")
    print(f"{written} pairs" + (f" (dropped: {dropped} broken characters)" if dropped else ""))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(str(error))
