"""Tasks. Importing this package registers them with the models and criterions, and patches fairseq."""

from fairseq_capsule import criterions, models  # noqa: F401  fairseq never imports the criterions of a plugin
from fairseq_capsule.checkpoints import loading
from fairseq_capsule.data import tokenizer  # noqa: F401  registers --tokenizer prepared
from fairseq_capsule.tasks.capsule_summarization import CapsuleSummarizationTask
from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationTask

loading.install()

__all__ = ["CapsuleSummarizationTask", "CapsuleTranslationTask"]
