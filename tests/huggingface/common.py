"""The common tests of transformers on every system, and on the tokenizer. test_common.py runs this file.

`transformers_tests` is the folder `tests` of the source distribution of transformers, which has no tests of generation.
"""

import json
import unittest
from pathlib import Path

import pytest
from transformers_tests import test_modeling_common
from transformers_tests.generation.test_utils import GenerationTesterMixin  # a stand-in
from transformers_tests.test_configuration_common import ConfigTester
from transformers_tests.test_modeling_common import ModelTesterMixin, ids_tensor, random_attention_mask
from transformers_tests.test_tokenization_common import TokenizerTesterMixin

from capsule_routing.huggingface import CapsuleConfig, CapsuleForConditionalGeneration, CapsuleTokenizer

# It sets options of other models, which our configuration refuses.
test_modeling_common.set_config_for_less_flaky_test = lambda config: None

SYSTEMS = {
    "Plain": {},
    "GuidedDynamicRouting": {"past_future": "gdr", "guided_heads": "both"},
    "Classifier": {"past_future": "clf"},
    "Attention": {"past_future": "attn", "guided_heads": "bow"},
    "GlobalRepresentation": {"global_representation": "capsule", "global_capsules": 4},
    "AttentionRouting": {"encoder_routing": "both", "decoder_routing": "horizontal"},
    "SelectiveAttention": {"selective_attention": "both", "query_key_norm": "both"},
}


class Sizes:
    """A small model and a batch, with the attributes that the common tests read."""

    batch_size, seq_length, encoder_seq_length, decoder_seq_length, key_length = 3, 7, 7, 7, 7
    hidden_size, num_hidden_layers, num_attention_heads, vocab_size, is_training = 16, 2, 4, 99, False

    def __init__(self, options):
        self.options = options

    def get_config(self):
        return CapsuleConfig(
            vocab_size=self.vocab_size,
            encoder_embed_dim=self.hidden_size,
            encoder_ffn_embed_dim=8,
            encoder_layers=self.num_hidden_layers,
            decoder_layers=self.num_hidden_layers,
            encoder_attention_heads=self.num_attention_heads,
            decoder_attention_heads=self.num_attention_heads,
            max_source_positions=40,
            max_target_positions=40,
            share_all_embeddings=True,
            **self.options,
        )

    def prepare_config_and_inputs_for_common(self):
        words = [ids_tensor([self.batch_size, self.seq_length], self.vocab_size).clamp(3) for _ in range(2)]
        masks = [random_attention_mask([self.batch_size, self.seq_length]) for _ in range(2)]
        words[0][:, -1] = 2
        inputs = dict(zip(("input_ids", "decoder_input_ids"), words))
        inputs.update(zip(("attention_mask", "decoder_attention_mask"), masks))
        return self.get_config(), inputs


class ModelTests(GenerationTesterMixin, ModelTesterMixin):
    all_model_classes = (CapsuleForConditionalGeneration,)
    is_encoder_decoder = True
    options = {}

    def setUp(self):
        self.model_tester = Sizes(self.options)
        self.config_tester = ConfigTester(self, config_class=CapsuleConfig)

    def test_config(self):
        self.config_tester.run_common_tests()

    @pytest.mark.xfail(strict=True, reason="parameters keep fairseq's names, without the name of a model in the model")
    def test_model_base_model_prefix(self):
        super().test_model_base_model_prefix()


for name, options in SYSTEMS.items():
    globals()[f"Test{name}"] = type(f"Test{name}", (ModelTests, unittest.TestCase), {"options": options})


class TestTokenizer(TokenizerTesterMixin, unittest.TestCase):
    tokenizer_class = CapsuleTokenizer
    test_tokenizer_from_extractor = False  # a tokenizer of the tokenizers library

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        letters = [chr(number) for number in range(33, 127)]
        words = ["<s>", "<pad>", "</s>", "<unk>", *letters, *(f"{letter}@@" for letter in letters)]
        words += ["hello", "world", "this", "is", "a", "test", "text"]
        vocabulary, codes = Path(cls.tmpdirname, "vocabulary.json"), Path(cls.tmpdirname, "codes")
        vocabulary.write_text(json.dumps({"source": words, "target": words}), encoding="utf-8")
        codes.write_text("#version: 0.2\nt h\n", encoding="utf-8")
        side = {"language": "en", "tokenizer": "none", "subwords": "subword-nmt"}
        tokenizer = CapsuleTokenizer(str(vocabulary), codes=str(codes), source=side, target=side)
        tokenizer.save_pretrained(cls.tmpdirname)
        CapsuleConfig().save_pretrained(cls.tmpdirname)  # for AutoTokenizer


def refuses(name):
    @pytest.mark.xfail(strict=True, reason="the dictionaries of a model are fixed: another word is refused")
    def test(self):
        getattr(TokenizerTesterMixin, name)(self)

    return test


ADDING = ("get_vocab", "save_and_load_tokenizer", "tokenize_special_tokens", "pad_token_initialization")
for name in (*ADDING, "bos_token_with_add_bos_token_true", "bos_token_with_add_bos_token_false"):
    setattr(TestTokenizer, f"test_{name}", refuses(f"test_{name}"))
