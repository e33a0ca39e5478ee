#!/usr/bin/env bash
# Scores a run of train.sh: averages its checkpoints, translates with the average, scores the translations.
#
#     evaluate.sh [OPTION VALUE]... RUN DATA
#
#   RUN            the run folder, or another one of fairseq's checkpoints
#   DATA           a prepare script's OUT: DATA/bin is translated, DATA/raw has the references (test.de; test.en1, ... too)
#   --split NAME   one or several, --split test --split test1 or --split test,test1 (test)
#   --checkpoints WHICH
#                  last:N or best:N, whose mean is taken, or a file of RUN (last:N, N the configuration's
#                  checkpoint.keep_last_epochs or keep_interval_updates, or as many as there are; without either checkpoint_best.pt)
#   --beam N, --lenpen X, --nbest N
#                  of the decoding (generation.beam, .lenpen and .nbest of the configuration, otherwise 5, 1 and 1)
#   --max-tokens N a batch of the decoding (12,000)
#   --lowercase    score without case
#   --against RUN2 a run that was evaluated on the same splits: paired bootstrap of every difference
#   --results NAME the folder of what comes out (evaluation)
#
#   RUN/evaluation/SPLIT/generate.out
#                  what fairseq-generate said, all N best
#   RUN/evaluation/SPLIT/translations.LANG, scores.txt, scores.json
#                  detokenised; every figure with its label and signature; the same as an object of JSON
#
# A summarisation run gets ROUGE instead of BLEU. Run again it does what is missing: generates once, scores once an option.

source "$(dirname "$0")/common.sh"

splits='' checkpoints='' beam='' lenpen='' nbest='' max_tokens=12000 lowercase='' against='' results=evaluation places=()
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
        --results) results=$(value "$@"); shift ;;
        -h | --help) usage; exit ;;
        -*) die "no option $1 (see --help)" ;;
        *) places+=("$1") ;;
    esac
    shift
done
[ ${#places[@]} -eq 2 ] || die "name RUN and DATA, not ${#places[@]} places (see --help)"
need_tools fairseq-capsule fairseq-generate flock python
plugin=$(realpath "$scripts/../fairseq_capsule")

# Whatever stands in the run folder is read and checked in Python; `words` is then the command that averages, if any.
read_plan plan-evaluation run="${places[0]}" data="${places[1]}" split="$splits" checkpoints="$checkpoints" beam="$beam" \
    lenpen="$lenpen" nbest="$nbest" max-tokens="$max_tokens" against="$against" results="$results"
run=${fields[run]} data=${fields[data]} against=${fields[against]} checkpoint=${fields[checkpoint]}
task=${fields[task]} source=${fields[source]} target=${fields[target]}
beam=${fields[beam]} lenpen=${fields[lenpen]} nbest=${fields[nbest]} max_tokens=${fields[max_tokens]}
IFS=, read -ra splits <<<"${fields[splits]}"
[[ ! ${fields[note]} ]] || echo "$program: note: ${fields[note]}" >&2
[[ ! ${words[*]} ]] || "${words[@]}" || exit 1
[[ ${fields[finished]} ]] || echo "$program: note: the training of $run has not reached its end" >&2

# --- a split -----------------------------------------------------------------------------------------------------------

translate() { # PART
    local device=(--cpu) sentences
    [[ ! $(visible_gpus) ]] || device=()
    sentences=$(wc -l <"$data/raw/$split.$target")
    fairseq-generate "$data/bin" --user-dir "$plugin" --task "$task" --source-lang "$source" --target-lang "$target" \
        --gen-subset "$split" --path "$checkpoint" --beam "$beam" --lenpen "$lenpen" --nbest "$nbest" \
        --max-tokens "$max_tokens" "${device[@]}" --no-progress-bar \
        --required-batch-size-multiple 1 | # else fairseq leaves out the last batch where it is no multiple of 8
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
    # The translations stay, the scores are those of the options that were given last.
    told="${scoring[*]} ${against:+$(fingerprint "$against/$results/$split/generate.out")}"
    [[ $told == "$(cat scoring 2>/dev/null)" ]] || rm -f scores.txt scores.json
    echo "$told" >scoring
    stage scores.txt score
    stage scores.json tail_of scores.txt
    head -n -1 scores.txt
}

tail_of() { # FILE PART: its last line
    tail -n 1 "$1" >"$2"
}

exec 8>&1 # the screen, for stages
for split in "${splits[@]}"; do
    echo "$split:"
    (evaluate "$split")
done
