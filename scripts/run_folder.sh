# Sourced by train.sh, behind common.sh: the books of a run folder, which is the present folder.
#
# settings binds it to one training, manifest.tsv tells of every start, finished says that there is nothing more to do.

open_run() { # OUT SETTING...: works inside OUT from here on, alone; another training's folder is refused
    lock "$1"
    # A training that failed before its first checkpoint binds the folder to nothing.
    [[ -e checkpoint_last.pt || -e finished ]] || rm -f settings manifest.tsv
    [[ ! -e checkpoint_last.pt || -e settings ]] || die "$1 holds checkpoints, but not of this script: name another folder"
    keep_settings "$@"
    [[ -e settings ]] || mv settings.part settings
    mend_last "$1"
}

mend_last() { # OUT: fairseq copies a checkpoint to checkpoint_last.pt in place; an interruption may leave half of it there
    if [[ ! -e checkpoint_last.pt ]] || is_whole_checkpoint checkpoint_last.pt; then return; fi
    local checkpoint
    for checkpoint in $(ls -t checkpoint*.pt); do
        [[ $checkpoint != checkpoint_avg_* ]] && is_whole_checkpoint "$checkpoint" || continue
        cp "$checkpoint" checkpoint_last.pt.part
        mv checkpoint_last.pt.part checkpoint_last.pt
        echo "checkpoint_last.pt was cut short by an interruption: going on from $checkpoint"
        return
    done
    die "$1/checkpoint_last.pt is damaged and no other checkpoint there is whole: delete $1, or name another folder"
}

is_whole_checkpoint() { # CHECKPOINT: a zip archive, whose directory is at its end
    python -c 'import sys, zipfile; sys.exit(not zipfile.is_zipfile(sys.argv[1]))' "$1"
}

last_update() { # that a checkpoint was saved after; 0 where there is none
    sed -nE 's/.*Saved checkpoint .* @ ([0-9]+) updates.*/\1/p' train.log 2>/dev/null | tail -n 1 | grep . || echo 0
}

note() { # KEY VALUE...: a line of the manifest
    (IFS=$'\t' && echo "$*") >>manifest.tsv
}

note_start() { # PROCESSES BATCH SEED DATA PLUGIN
    [[ -e manifest.tsv ]] || sed 's/^/setting\t/; s/ /\t/' settings >manifest.tsv
    note start "$(date --iso-8601=seconds)"
    [[ ! -e checkpoint_last.pt ]] || note resumed "after update $(last_update)"
    note command "$command_line"
    note version python "$(python -c 'import platform; print(platform.python_version())')"
    versions fairseq-capsule fairseq fairseq-fixed torch numpy hydra-core >>manifest.tsv
    note git "$(git -C "$5" describe --always --abbrev=40 --dirty --exclude '*' 2>/dev/null || echo unknown)"
    note host "$(hostname)" "$cores × $(sed -n 's/^model name.*: //p' /proc/cpuinfo | sed -n 1p)"
    nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null |
        sed 's/^/gpu\t/' >>manifest.tsv || true
    note processes "$1"
    note batch "$2"
    note seed "$3"
    note data "$4"
}

note_end() { # HOW
    note end "$(date --iso-8601=seconds)" "after update $(last_update)" "$1"
}
