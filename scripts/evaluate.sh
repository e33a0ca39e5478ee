#!/usr/bin/env bash
# Average the checkpoints of a run of train.sh, translate with the average, and score the translations.
#
#     evaluate.sh [OPTION VALUE]... RUN DATA
#
#   RUN            the run folder, or another folder with fairseq's checkpoints
#   DATA           OUT of a prepare script: DATA/bin is translated, DATA/raw has the references (test.de, also test.en1, ...)
#   --split NAME   one or several: --split test --split test1, or --split test,test1 (test)
#   --checkpoints WHICH
#                  average last:N or best:N, or take one file of RUN. Default: last:N, where N is checkpoint.keep_last_epochs or
#                  keep_interval_updates of the configuration, or fewer if there are fewer; without either, checkpoint_best.pt
#   --beam N, --lenpen X, --nbest N
#                  decoding options (generation.beam, .lenpen and .nbest of the configuration, otherwise 5, 1 and 1)
#   --max-tokens N tokens per batch in decoding (12,000)
#   --lowercase    ignore case in the scores
#   --against RUN2 a run that was evaluated on the same splits: test every difference by a paired bootstrap
#   --results NAME the name of the output folder (evaluation)
#   --user-dir DIR the plugin that defines the model, if it is not of this package (docs/extending.md). It is a program, so RUN
#                  alone cannot name it
#
#   RUN/evaluation/SPLIT/generate.out
#                  the output of fairseq-generate, with all N best
#   RUN/evaluation/SPLIT/translations.LANG, scores.txt, scores.json
#                  detokenised translations; every figure with its label and signature; the same as a JSON object
#
# A summarisation run gets ROUGE instead of BLEU. The same command again does only what is missing: other scoring options score
# again, but do not translate again.

source "$(dirname "$0")/common.sh"

splits='' checkpoints='' beam='' lenpen='' nbest='' max_tokens=12000 lowercase='' against='' results=evaluation user_dir='' places=()
while [ $# -gt 0 ]; do
    case $1 in
        --split) splits+=${splits:+,}$(value "$@"); shift ;;
        --checkpoints) checkpoints=$(value "$@"); shift ;;
        --beam) beam=$(value "$@"); shift ;;
        --lenpen) lenpen=$(value "$@"); shift ;;
        --nbest) nbest=$(value "$@"); shift ;;
        --max-tokens) max_tokens=$(value "$@"); shift ;;
        --lowercase) lowercase=yes ;;
        --against) against=$(value "$@"); shift ;;
        --user-dir) user_dir=$(value "$@"); shift ;;
        --results) results=$(value "$@"); shift ;;
        -*) die "unknown option $1 (see --help)" ;;
        *) places+=("$1") ;;
    esac
    shift
done
[ ${#places[@]} -eq 2 ] || die "name RUN and DATA, not ${#places[@]} places (see --help)"
need_tools fairseq-capsule fairseq-generate flock python
plugin=$(realpath "$scripts/../fairseq_capsule")

# Python reads and checks the run folder. `words` is then the command that averages, if there is one.
read_plan plan-evaluation run="${places[0]}" data="${places[1]}" split="$splits" checkpoints="$checkpoints" beam="$beam" \
    lenpen="$lenpen" nbest="$nbest" max-tokens="$max_tokens" against="$against" results="$results" \
    user-dir="$user_dir" plugin="$plugin"
run=${fields[run]} data=${fields[data]} against=${fields[against]} checkpoint=${fields[checkpoint]} plugin=${fields[plugin]}
task=${fields[task]} source=${fields[source]} target=${fields[target]}
beam=${fields[beam]} lenpen=${fields[lenpen]} nbest=${fields[nbest]} max_tokens=${fields[max_tokens]}
IFS=, read -ra splits <<<"${fields[splits]}"
[[ ! ${fields[note]} ]] || echo "$program: note: ${fields[note]}" >&2
[[ ! ${words[*]} ]] || "${words[@]}" || exit 1
[[ ${fields[finished]} ]] || echo "$program: note: the training of $run is not finished" >&2

# --- a split -----------------------------------------------------------------------------------------------------------

translate() { # PART
    local device=(--cpu) gpu sentences
    gpu=$(visible_gpus | sed -n 1p) # on several GPUs fairseq would mix the outputs of the processes
    local -x CUDA_VISIBLE_DEVICES=$gpu
    if [[ $gpu ]]; then device=(); else keep_memory; fi
    sentences=$(wc -l <"$data/raw/$split.$target")
    fairseq-generate "$data/bin" --user-dir "$plugin" --task "$task" --source-lang "$source" --target-lang "$target" \
        --gen-subset "$split" --path "$checkpoint" --beam "$beam" --lenpen "$lenpen" --nbest "$nbest" \
        --max-tokens "$max_tokens" "${device[@]}" --no-progress-bar \
        --required-batch-size-multiple 1 | # otherwise fairseq leaves out a last batch that is no multiple of 8
        awk -v all="$sentences" -v out="$1" '{ print >out }
            /^S-/ && ++n % int(all / 10 + 1) == 0 { print "  " n " of " all " sentences"; fflush() }' >&8
}

score() { # PART
    fairseq-capsule score generate.out "${references[@]}" "${scoring[@]}" --output "translations.$target" --json \
        >"$1" 2>notes || { cat notes >&2 && return 1; }
    cat notes >&8
    rm notes
}

evaluate() { # SPLIT
    local split=$1 references scoring told
    references=("$data/raw/$split.$target")
    mapfile -d '' -O 1 -t references < <(find "$data/raw/" -maxdepth 1 -name "$split.${target}[0-9]*" -print0 | sort -z)
    read -ra scoring <<<"--lang $target ${fields[scoring]}"
    [[ $task != capsule_summarization ]] || scoring=(--rouge)
    [[ ! $lowercase ]] || scoring+=(--lowercase)
    [[ ! $against ]] || scoring+=(--against "$against/$results/$split/generate.out")

    enter "$run/$results/$split" "checkpoint $(fingerprint "$checkpoint")" "beam $beam" "lenpen $lenpen" "nbest $nbest" \
        "data $(cat "$data/bin/$split".*.bin "$data/bin"/dict.*.txt | sha256sum | cut -c 1-12)"
    stage generate.out translate
    # Keep the translations. Score again if the scoring options have changed.
    told="${scoring[*]} ${against:+$(fingerprint "$against/$results/$split/generate.out")}"
    if [[ $told != "$(cat scoring 2>/dev/null)" ]]; then
        { rm -f scores.txt scores.json && echo "$told" >scoring; } 2>/dev/null || cannot_write "$PWD"
    fi
    stage scores.txt score
    stage scores.json tail_of scores.txt
    head -n -1 scores.txt
}

tail_of() { # FILE PART: writes the last line of FILE
    tail -n 1 "$1" >"$2"
}

exec 8>&1 # the terminal: the output of a stage goes to its log
for split in "${splits[@]}"; do
    echo "$split:"
    (evaluate "$split")
done
