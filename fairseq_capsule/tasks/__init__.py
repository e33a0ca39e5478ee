"""Tasks. Importing this registers them."""

from fairseq_capsule.data import characters  # noqa: F401  lets --bpe characters be named
from fairseq_capsule.tasks.capsule_summarization import CapsuleSummarizationTask
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationTask

__all__ = ["CapsuleSummarizationTask", "CapsuleTranslationTask"]
