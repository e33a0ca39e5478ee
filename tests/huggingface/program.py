"""A program that translates with an exported model of transformers, in a process that cannot import fairseq."""

# Arguments: the folder, and the side of the padding. Prints a translation, its subwords and its score for each line.
TRANSLATING = """
import sys
sys.modules["fairseq"] = None
import capsule_routing.huggingface
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer, model = (kind.from_pretrained(sys.argv[1]) for kind in (AutoTokenizer, AutoModelForSeq2SeqLM))
lines = sys.stdin.read().splitlines()
for start in range(0, len(lines), 50):
    batch = tokenizer(lines[start : start + 50], return_tensors="pt", padding=True, padding_side=sys.argv[2])
    found = model.generate(**batch, return_dict_in_generate=True, output_scores=True)
    for tokens, score in zip(found.sequences, found.sequences_scores.tolist()):
        words = tokenizer.convert_ids_to_tokens(tokens, skip_special_tokens=True)
        print(tokenizer.decode(tokens, skip_special_tokens=True), " ".join(words), score, sep="\\t")
"""
