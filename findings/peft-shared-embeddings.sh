#!/usr/bin/env bash
# peft and transformers: an adapter of the embeddings "shared" trains nothing in Marian, M2M-100/NLLB, BART, mBART and T5.
#
# Expected: "shared" holds the embeddings of encoder, decoder and output, so LoRA on it, or modules_to_save=["shared"] for
#     new language tokens, adapts all three.
# Seen: both are accepted and count as trainable parameters; after a backward pass their gradient is None. Nothing warns.
# Why: each side has a module "embed_tokens" of its own, tied to "shared" by the weight alone. No forward pass calls
#     "shared", and peft wraps the module and not the weight.
# Consequence: the new tokens keep their initial vectors. The rest of the adapter trains, so that the loss goes down all the
#     same, and the saved adapter holds copies of untrained embeddings.
# Instead: trainable_token_indices trains the rows of new tokens. After the first step look for parameters that require a
#     gradient and have None.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3.11}" -m venv "$folder"
"$folder/bin/pip" install --quiet torch==2.13.0 transformers==5.24.0 peft==0.21.2

HF_HUB_OFFLINE=1 "$folder/bin/python" - <<'PYTHON'
import peft
import torch
import transformers
from peft import LoraConfig, get_peft_model

transformers.logging.set_verbosity_error()
common = {"vocab_size": 30, "d_model": 16, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
sizes = {"layers": 1, "attention_heads": 2, "ffn_dim": 32}
sides = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()}
t5 = {"d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
models = {
    "Marian": (transformers.MarianConfig(**common, **sides), transformers.MarianMTModel, "q_proj"),
    "M2M100": (transformers.M2M100Config(**common, **sides), transformers.M2M100ForConditionalGeneration, "q_proj"),
    "Bart": (transformers.BartConfig(**common, **sides), transformers.BartForConditionalGeneration, "q_proj"),
    "MBart": (transformers.MBartConfig(**common, **sides), transformers.MBartForConditionalGeneration, "q_proj"),
    "T5": (transformers.T5Config(**common, **t5), transformers.T5ForConditionalGeneration, "q"),
}
adapters = {
    "LoRA on shared": lambda query: LoraConfig(target_modules=[query, "shared"]),
    "modules_to_save": lambda query: LoraConfig(target_modules=[query], modules_to_save=["shared"]),
    "trainable_token_indices": lambda query: LoraConfig(target_modules=[query], trainable_token_indices=[5, 6]),
}

print("torch", torch.__version__, "transformers", transformers.__version__, "peft", peft.__version__)
source, target = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[6, 8, 5, 2]])
for name, (config, model_class, query) in models.items():
    for adapter, settings in adapters.items():
        model = get_peft_model(model_class(config), settings(query))
        model(input_ids=source, labels=target).loss.backward()
        trained = {key: value.grad for key, value in model.named_parameters() if value.requires_grad}
        embeddings = {key: grad for key, grad in trained.items() if "shared" in key or "embed_tokens" in key}
        without = [key for key, grad in embeddings.items() if grad is None]
        print(f"{name}, {adapter}: {len(without)} of {len(embeddings)} embedding parameters have no gradient")
        expected = 0 if adapter == "trainable_token_indices" else len(embeddings)
        assert embeddings and len(without) == expected, f"changed: {name}, {adapter}"
        assert any(grad is not None for grad in trained.values())
PYTHON
