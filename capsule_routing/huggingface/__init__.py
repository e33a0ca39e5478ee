"""Models of the package in Hugging Face transformers, without fairseq. Importing this package registers them.

`fairseq-capsule export --to transformers` writes folders that the Auto classes of transformers then load.
"""

from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer

from capsule_routing.huggingface.configuration import CapsuleConfig
from capsule_routing.huggingface.modeling import CapsuleForConditionalGeneration, CapsuleModel
from capsule_routing.huggingface.tokenization import CapsuleTokenizer

AutoConfig.register(CapsuleConfig.model_type, CapsuleConfig)
AutoModel.register(CapsuleConfig, CapsuleModel)
AutoModelForSeq2SeqLM.register(CapsuleConfig, CapsuleForConditionalGeneration)
AutoTokenizer.register(CapsuleConfig, slow_tokenizer_class=CapsuleTokenizer)

__all__ = ["CapsuleConfig", "CapsuleForConditionalGeneration", "CapsuleModel", "CapsuleTokenizer"]
