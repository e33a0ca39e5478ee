"""Tasks. Importing this registers them."""

from fairseq_capsule.tasks.capsule_translation import CapsuleTranslationTask

__all__ = ["CapsuleTranslationTask"]
