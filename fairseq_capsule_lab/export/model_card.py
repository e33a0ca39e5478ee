"""The model card of an exported model: what it is, what it was trained on, how it was made, its scores."""

import hashlib
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional

from fairseq.models import BaseFairseqModel

from capsule_routing import __version__
from capsule_routing.errors import UserError
from capsule_routing.text.folders import settings_of
from capsule_routing.text.languages import rules_of
from capsule_routing.text.preparation import TextPreparation
from fairseq_capsule.options import in_words, interpretations
from fairseq_capsule_lab.export.transformer import mechanisms_in

CARD = """\
---
language:
- "{source}"
- "{target}"
license: {license}
library_name: transformers
pipeline_tag: translation
tags:
- fairseq-capsule
---
# {source}-{target}: {architecture}

{summary}

```python
import capsule_routing.huggingface  # pip install 'fairseq-capsule[huggingface]'
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained(FOLDER), AutoModelForSeq2SeqLM.from_pretrained(FOLDER)
translations = model.generate(**tokenizer(["..."], return_tensors="pt", padding=True))
print(tokenizer.batch_decode(translations, skip_special_tokens=True))
```

| | |
|---|---|
{rows}

{scores}
"""


@dataclass(frozen=True)
class CardFacts:
    """What `fairseq-capsule export` was called with, and the name of the model's architecture."""

    checkpoint: Path
    data: Path
    out: Path
    architecture: str
    license: str
    scores: Optional[Path]


def model_card(model: BaseFairseqModel, sides: tuple[TextPreparation, TextPreparation], facts: CardFacts) -> str:
    """Return the model card in Markdown. `sides` is how the text of source and target was prepared.

    Raises:
        UserError: the file with the scores is damaged.
    """
    mechanisms = mechanisms_in(model)
    with open(facts.checkpoint, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    settings = settings_of(facts.data)
    data = [
        settings["script"],
        *(f"{name} {value}" for name, value in settings.items() if name not in ("script", "from")),
    ]
    # Names without their folders, which are those of a machine.
    command = ["fairseq-capsule", "export", *(path.name for path in (facts.checkpoint, facts.data, facts.out))]
    rows = {
        "parameters": f"{sum(parameter.numel() for parameter in model.parameters()):,}",
        "mechanisms": ", ".join(mechanism.name for mechanism in mechanisms) or "none",
        "interpretation of the paper": in_words(interpretations(model.cfg)),
        "data": ", ".join(data),
        "checkpoint": f"`{facts.checkpoint.name}`, SHA-256 `{digest}`",
        "made by": f"`{shlex.join([*command, '--to', 'transformers'])}`, version {__version__}",
    }
    return CARD.format(
        source=rules_of(sides[0].language),
        target=rules_of(sides[1].language),
        license=facts.license,
        architecture=facts.architecture,
        summary="\n".join(f"It {mechanism.summary}." for mechanism in mechanisms) or "A Transformer without routing.",
        rows="\n".join(f"| {name} | {value} |" for name, value in rows.items() if value),
        scores="\n".join(["## Scores", "", *_scores(facts.scores)]) if facts.scores else "It has no scores yet.",
    )


def _scores(file: Path) -> List[str]:
    try:
        report = json.loads(file.read_text(encoding="utf-8"))
        scores = [(score["label"], f"{score['score']:.2f}", score["signature"]) for score in report["scores"].values()]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{file}: no scores; name a scores.json of scripts/evaluate.sh") from error
    rows = [" | ".join(part.replace("|", "\\|") for part in row) for row in scores]
    return ["| measure | score | signature |", "|---|---|---|", *(f"| {row} |" for row in rows)]
