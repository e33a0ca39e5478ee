#!/usr/bin/env bash
# Sequence-level distillation (Kim and Rush 2016): translate the training set with a teacher, as the data of students.
#
#     distill.sh [--beam N] [--lenpen X] [--shards N] [--processes N] [--max-tokens N] [--user-dir DIR]
#                TEACHER DATA OUT
#
#   TEACHER        a checkpoint of any translation model that fairseq and this package can load
#   DATA           a binarised data folder, with the teacher's languages and dictionaries
#   --beam N, --lenpen X
#                  options of the teacher's decoding (8 and 0.8, as in Wang et al. 2019)
#   --shards N     number of pieces of the training set (32); finished pieces survive an interruption
#   --processes N  pieces to translate at the same time (one per GPU; without a GPU, one per core)
#   --max-tokens N tokens per batch of a process (4,096)
#   --user-dir DIR the plugin that defines the teacher, if it is not of this package (docs/extending.md)
#
#   OUT/bin        DATA with the teacher's translations as targets of the training set. The dictionaries, validation and
#                  test sets are those of DATA
#   OUT/shards     the teacher's output; OUT/manifest.tsv: command, versions, hashes, counts
#
# A sentence keeps its own target if its translation is empty or reaches the maximum length (twice the source plus 10), or if the
# teacher skips it because it is too long. The script prints how many do.
#
# The same command resumes an interrupted run. It does nothing after a finished run.

source "$(dirname "$0")/common.sh"

beam=8 lenpen=0.8 shards=32 processes='' max_tokens=4096 user_dir=''
take_options "beam lenpen shards processes max-tokens user-dir" "$@"
[ ${#places[@]} -eq 3 ] || die "name TEACHER, DATA and OUT, not ${#places[@]} places (see --help)"
teacher=${places[0]} data=${places[1]} out=${places[2]}
need_positive --beam "$beam" 1000
need_positive --shards "$shards" 100000
need_positive --max-tokens "$max_tokens"
[[ $lenpen =~ ^[0-9]{0,6}\.?[0-9]{1,12}$ ]] || die "--lenpen must be a number, not '$lenpen'"
[[ -f $teacher ]] || die "$teacher: no such checkpoint"
[[ -d $data ]] || die "$data: no such data folder"
need_tools fairseq-generate flock python
read_plan plan-plugin user-dir="$user_dir" plugin="$(realpath "$scripts/../fairseq_capsule")"
plugin=${fields[plugin]}
gpus=$(visible_gpus) # one per line
[[ $gpus ]] || keep_memory
: "${processes:=$(if [[ $gpus ]]; then wc -l <<<"$gpus"; else echo "$cores"; fi)}"
need_positive --processes "$processes" 1024
checked=$(python "$scripts/check_teacher.py" "$teacher" "$data") || exit 1
read -r pair longest <<<"$checked"
teacher=$(realpath "$teacher") data=$(realpath "$data")
export beam lenpen shards max_tokens teacher data plugin gpus pair

decode() { # SHARD: translates one piece, unless it exists. fairseq ignores --num-shards, so a piece is the share of a rank
    local file=shards/$1.out device=(--cpu) gpu
    [[ ! -e $file ]] || return 0
    [[ ! $gpus ]] || device=()
    gpu=$(awk -v slot="${slot:-0}" '{ name[NR - 1] = $0 } END { print name[slot % NR] }' <<<"$gpus") # xargs sets `slot`
    CUDA_VISIBLE_DEVICES=$gpu OMP_NUM_THREADS=1 fairseq-generate "$data" --user-dir "$plugin" \
        --source-lang "${pair%-*}" --target-lang "${pair#*-}" --gen-subset train --path "$teacher" \
        --beam "$beam" --lenpen "$lenpen" --max-len-a 2 --max-len-b 10 --max-tokens "$max_tokens" "${device[@]}" \
        --distributed-world-size "$shards" --distributed-rank "$1" \
        --required-batch-size-multiple 1 --skip-invalid-size-inputs-valid-test --no-progress-bar >"$file.part" 2>"$file.log" ||
        # For an empty share fairseq fails at the end: it divides by the number of sentences.
        [[ $(tail -n 1 "$file.log") == ZeroDivisionError* ]] || return 255 # makes xargs stop
    mv "$file.part" "$file"
    grep 'will be skipped' "$file.log" >"$file.skipped.log" || rm "$file.skipped.log"
    rm "$file.log"
    echo "shard $(find shards -name '*.out' | wc -l) of $shards: $(grep -c ^H- "$file" || true) sentences"
}
export -f decode

collect() { # PART: writes the data folder
    mkdir "$1"
    find -L "$data" -maxdepth 1 -type f ! -name "train.$pair.${pair#*-}.*" -exec cp -t "$1" {} +
    python "$scripts/collect_hypotheses.py" "$data" "$pair" "$longest" shards "$1" >counted
}

manifest_of_shards() { # PART
    manifest "$1"
    sed 's/^/counted\t/' counted >>"$1"
}

# fairseq divides the list of batches into shards, so the sentences of a shard depend on --max-tokens.
enter "$out" "teacher $(fingerprint "$teacher")" "data $(cat "$data/train.$pair."*.bin | sha256sum | cut -c 1-12)" \
    "languages $pair" "beam $beam" "lenpen $lenpen" "shards $shards" "max-tokens $max_tokens"
[[ -e settings ]] || mv settings.part settings # shards depend on the settings before any stage is finished
mkdir -p shards
if [[ ! -e bin ]]; then
    find shards -name '*.out.log' -delete
    # shellcheck disable=SC2016 # the inner shell expands it
    seq 0 "$(calculate "$shards" - 1)" |
        xargs -P "$processes" --process-slot-var=slot -I{} bash -c 'set -euo pipefail; decode "$1"' - {} 2>/dev/null ||
        die "the teacher failed: $(find shards -name '*.out.log' -size +0 -exec ls -t {} + | sed -n 1p | xargs tail -n 1 | sed 's/^fairseq_capsule.errors.UserError: //') (full logs: $PWD/shards); fix the cause and run the same command again"
fi
stage bin collect
cat counted
stage manifest.tsv manifest_of_shards
echo "ready: $PWD/bin"
