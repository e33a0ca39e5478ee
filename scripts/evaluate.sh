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
#                  checkpoint.keep_last_epochs or keep_interval_updates; without either checkpoint_best.pt)
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
while (($#)); do
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
((${#places[@]} == 2)) || die "name RUN and DATA, not ${#places[@]} places (see --help)"
run=${places[0]} data=${places[1]}
exists "$run"/checkpoint*.pt || die "$run: no checkpoints in it; name the run folder of a training"
[[ -d $data/bin && -d $data/raw ]] || die "$data: no 'bin' and 'raw' in it; name the OUT of a prepare script"
[[ ! $against || -d $against/$results ]] || die "$against: no '$results' in it; evaluate that run first, in the same way"
[[ $results != */* ]] || die "--results wants a name, not '$results'"

setting() { # KEY [OTHERWISE]: of the run's configuration
    sed -n "s/^$1 //p" "$run/settings" 2>/dev/null | grep . || echo "${2:-}"
}

: "${beam:=$(setting generation.beam 5)}" "${lenpen:=$(setting generation.lenpen 1)}"
: "${nbest:=$(setting generation.nbest 1)}"
need_positive --beam "$beam"
need_positive --nbest "$nbest"
need_positive --max-tokens "$max_tokens"
[[ $lenpen =~ ^-?[0-9]*\.?[0-9]+$ ]] || die "--lenpen wants a number, not '$lenpen'"
((nbest <= beam)) || die "--nbest $nbest: a beam of $beam has no more than $beam; ask for fewer, or a wider beam"
need_tools fairseq-capsule fairseq-generate flock python
task=$(setting task._name translation)
pair=$(printf '%s\n' "$data"/bin/*.bin | sed -nE 's|.*/[^./]+\.([^-./]+)-([^-./]+)\..*|\1 \2|p' | sed -n 1p) || true
source=$(setting task.source_lang "${pair% *}") target=$(setting task.target_lang "${pair#* }")
plugin=$(realpath "$scripts/../fairseq_capsule")
run=$(realpath "$run") data=$(realpath "$data") against=${against:+$(realpath "$against")}
IFS=, read -ra splits <<<"${splits:-test}"
for split in "${splits[@]}"; do
    exists "$data/bin/$split".*.bin || die "$data/bin: no split '$split' in it"
    [[ -f $data/raw/$split.$target ]] || die "$data/raw/$split.$target: no such reference"
    [[ ! $against || -f $against/$results/$split/generate.out ]] || die "$against: '$split' was not evaluated; do that first"
done

# --- the model ---------------------------------------------------------------------------------------------------------

if [[ ! $checkpoints ]]; then
    kept=$(setting checkpoint.keep_last_epochs "$(setting checkpoint.keep_interval_updates 0)")
    checkpoints=checkpoint_best.pt
    ((kept <= 0)) || checkpoints=last:$kept
fi
if [[ $checkpoints =~ ^(last|best):([1-9][0-9]*)$ ]]; then
    # A run that keeps none of its epochs has the checkpoints of every so many updates.
    updates=$(exists "$run"/checkpoint[0-9]*.pt || echo --updates)
    [[ $checkpoints != best:* ]] || ! exists "$run"/checkpoint.best_*.pt || updates=''
    checkpoint=$run/checkpoint_avg_${checkpoints/:/}${updates:+_updates}.pt
    newer=$(find "$run" -maxdepth 1 -name 'checkpoint*.pt' ! -name 'checkpoint_avg_*' -newer "$checkpoint" 2>/dev/null) ||
        newer=all # there is no average yet
    [[ ! $newer ]] ||
        fairseq-capsule average "$run" "--${checkpoints%:*}" "${checkpoints#*:}" $updates --output "$checkpoint" || exit 1
else
    checkpoint=$run/$checkpoints
    [[ -f $checkpoint ]] || die "--checkpoints $checkpoints: neither last:N nor best:N nor a file of $run"
fi
[[ ! -e $run/settings || -e $run/finished ]] || echo "$program: note: the training of $run has not reached its end" >&2

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
    mapfile -O 1 -t references < <(find "$data/raw/" -maxdepth 1 -name "$split.$target[0-9]*" | sort)
    scoring=(--lang "$target")
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
