#!/usr/bin/env bash
# Make a table of a paper: train, translate and measure what is missing, then print our figures next to the paper's.
#
#     reproduce.sh TABLE [--scale paper|small|smoke] [--seeds 1,2,3] [--launcher local|slurm|PROFILE]
#                  [--baseline CHECKPOINT] [--data DIR] [--runs DIR] [--cores N] [--rows ROW...] [--figure] [--report]
#                  [--user-dir DIR] [--dry-run]
#
#   TABLE          for example duan-table2, or comparison: all systems under equal conditions. `fairseq-capsule table` lists all.
#                  Or a YAML file that defines a table, such as ./mine.yaml
#   --scale S      paper (default): the paper's corpus, sizes and schedule; small: Multi30k at tiny size; smoke: the
#                  embedded corpus and a few updates, to check that everything works
#   --seeds N,N,…  one training for each (1)
#   --launcher L   local (default): on this machine, one step after another; slurm: each step is a Slurm job; or the folder of another
#                  Snakemake profile
#   --baseline CHECKPOINT
#                  replaces the Transformer that other rows start from, or that teaches them. Prepare the data with its codes and
#                  dictionary
#   --data DIR     the folder of prepared corpora, such as DIR/multi30k (data); missing ones are prepared
#   --runs DIR     the output folder (runs)
#   --cores N      cores of this machine to use (all)
#   --rows ROW...  only these rows, and what they need
#   --figure       also draw the table, if its definition states the axes. A figure of a paper is always drawn
#   --report       also write a page with the table, its plot and the logs of the trainings: RUNS/SCALE/tables/TABLE.html
#   --user-dir DIR a plugin of your own that defines the models of rows (docs/extending.md). A row may name another one:
#                  common.user_dir=DIR
#   --dry-run      print every missing step: its command, GPUs, memory and minutes
#
# The same command again does what is missing. Rows that several tables share are run once. A second run in the same folder waits
# for the first one.

source "$(dirname "$0")/common.sh"

need_tools fairseq-capsule python
exec fairseq-capsule reproduce "$@"
