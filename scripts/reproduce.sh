#!/usr/bin/env bash
# A table of a paper: trains, translates and measures what is missing of it, then prints our figures beside the paper's.
#
#     reproduce.sh TABLE [--scale paper|small|smoke] [--seeds 1,2,3] [--launcher local|slurm|kubernetes|PROFILE]
#                  [--baseline CHECKPOINT] [--data DIR] [--runs DIR] [--cores N] [--rows ROW...] [--figure] [--report]
#                  [--dry-run]
#
#   TABLE          as duan-table2, or comparison, all systems under equal conditions; `fairseq-capsule table` lists them
#   --scale S      paper (the default): the paper's corpus, sizes and schedule; small: Multi30k at tiny size; smoke: the
#                  embedded corpus, a few updates, to see that everything works
#   --seeds N,N,…  a training for each (1)
#   --launcher L   a folder of workflow/profiles, or of another profile of Snakemake's: local (the default): here, one step
#                  after another; slurm: each step a job of Slurm's; kubernetes: each a pod
#   --baseline CHECKPOINT
#                  takes the place of the Transformer that others start from or are taught by; prepare the data with its codes
#                  and dictionary
#   --data DIR     the prepared corpora, DIR/multi30k and so on (data); what is missing is prepared
#   --runs DIR     everything that is made (runs)
#   --cores N      of this machine (all)
#   --rows ROW...  only these rows, and what they need
#   --figure       draws the table too, where its definition says what over what; a paper's figure is always drawn
#   --report       writes Snakemake's report with the table, its plots and the logs of the trainings: RUNS/SCALE/tables/TABLE.html
#   --dry-run      prints every command, with its GPUs and minutes
#
# It runs Snakemake (workflow/Snakefile) and prints that command. Run again it does what is missing: rows that tables share
# are run once. A second run in the same folder waits for the first one.

source "$(dirname "$0")/common.sh"

[[ ${1:-} != @(-h|--help) ]] || { usage; exit; }
need_tools fairseq-capsule python
exec fairseq-capsule reproduce "$@"
