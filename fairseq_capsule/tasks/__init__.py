"""Tasks. Importing this package registers them."""

from fairseq_capsule.data import characters  # noqa: F401  makes --bpe characters available
from fairseq_capsule.tasks.capsule_summarization import CapsuleSummarizationTask
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationTask

__all__ = ["CapsuleSummarizationTask", "CapsuleTranslationTask"]
