#!/usr/bin/env bash
# Average checkpoints, translate with fairseq-generate and score with sacrebleu, by the plain commands of each. It fits
# Moses tokens with subwords of subword-nmt, and one reference. Take evaluate.sh for other text, several references,
# summaries and tests of significance; it also reads the decoding from the configuration of the run, and resumes.
#
#     generate.sh [OPTION]... RUN DATA SOURCE TARGET
#
#   RUN, DATA              the folder with fairseq's checkpoints; OUT of a prepare script, with bin and raw
#   --split NAMES          such as test,test1 (test)
#   --last N               average the last N checkpoints of epochs (5)
#   --last-updates N       or the last N that were saved by updates
#   --checkpoint FILE      or take this one
#   --beam N, --lenpen X   of the decoding (5, 1)
#   --max-tokens N         tokens in a batch (12,000): fewer need less memory
#   --lowercase            ignore case in the scores
#
#   RUN/generated/SPLIT    generate.out, tokens and tokens.reference, and plain: detokenised translations

source "$(dirname "$0")/common.sh"

splits=test average=(--last 5) checkpoint='' decoding=(--max-tokens 12000) lowercase=()
while [[ ${1:-} == -* ]]; do
    case $1 in
        -h | --help) print_help ;;
        --split) splits=$2 ;;
        --last) average=(--last "$2") ;;
        --last-updates) average=(--last "$2" --updates) ;;
        --checkpoint) checkpoint=$2 ;;
        --beam | --lenpen | --max-tokens) decoding+=("$1" "$2") ;;
        --lowercase) lowercase=(--lowercase --chrf-lowercase) && shift && continue ;;
        *) die "unknown option $1 (see --help)" ;;
    esac
    shift 2
done
[ $# -eq 4 ] || die "name RUN, DATA, SOURCE and TARGET (see --help)"
tokenizer=$(fairseq-capsule filter bleu-tokenizer "$4") # of BLEU; refuses a language that Moses does not cut into words
if [ -z "$checkpoint" ]; then
    checkpoint=$1/checkpoint_average.pt
    fairseq-capsule average "$1" "${average[@]}" --output "$checkpoint"
fi
for split in ${splits//,/ }; do
    out=$1/generated/$split && mkdir -p "$out"
    # All sentences: fairseq leaves out a last batch of fewer than 8. One process: those of several GPUs mix their outputs.
    fairseq-generate "$2/bin" --user-dir "$root/fairseq_capsule" --gen-subset "$split" --source-lang "$3" --target-lang "$4" \
        --path "$checkpoint" "${decoding[@]}" --remove-bpe --required-batch-size-multiple 1 \
        --distributed-world-size 1 >"$out/generate.out"
    grep '^H-' "$out/generate.out" | sort -V | cut -f 3 >"$out/tokens"
    grep '^T-' "$out/generate.out" | sort -V | cut -f 2 >"$out/tokens.reference"
    sacremoses -q -l "$4" detokenize <"$out/tokens" >"$out/plain"
    sacrebleu "$out/tokens.reference" -i "$out/tokens" --tokenize none --smooth-method none --force --format text --width 2 "${lowercase[@]}"
    sacrebleu "$2/raw/$split.$4" -i "$out/plain" --metrics bleu chrf --tokenize "$tokenizer" --format text --width 2 "${lowercase[@]}"
done
