#!/usr/bin/env bash
# A table of a paper: trains, translates and measures what is missing of it, then prints our figures beside the paper's.
#
#     reproduce.sh TABLE [--scale paper|small|smoke] [--seeds 1,2,3] [--launcher local|slurm] [--baseline CHECKPOINT]
#                  [--data DIR] [--runs DIR] [--rows ROW...] [--dry-run]
#
#   TABLE          as duan-table2; `fairseq-capsule table` lists them
#   --scale S      paper (the default): the paper's corpus, sizes and schedule; small: Multi30k at tiny size; smoke: the
#                  embedded corpus, a few updates, to see that everything works
#   --seeds N,N,…  a training for each (1)
#   --launcher L   local (the default): here, one process a row, one after another; slurm: each a job of Slurm's
#   --baseline CHECKPOINT
#                  takes the place of the Transformer that others start from or are taught by; prepare the data with its codes
#                  and dictionary
#   --data DIR     the prepared corpora, DIR/multi30k and so on (data); what is missing is prepared
#   --runs DIR     everything that is made (runs)
#   --rows ROW...  only these rows, and what they need
#   --dry-run      prints every command, with its GPUs and hours
#
# Run again it does what is missing: rows that tables share are run once.

source "$(dirname "$0")/common.sh"

[[ ${1:-} != @(-h|--help) ]] || { usage; exit; }
need_tools fairseq-capsule python
exec fairseq-capsule reproduce "$@"
