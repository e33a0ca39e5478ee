# The commands of one-seed.csv, and of the rows of further.csv that name this file, from the root of the repository. They record
# earlier trainings: seed 1, the code of that time, Python 3.11.7, torch 2.13.0+cpu, fairseq-fixed 0.12.3.1. Multi30k's texts are lower-cased, so the scores ignore case.
# A pause is not an interruption: the process stopped for timings and went on.
#
# Signatures of Multi30k's scores:
#   tokenised and compound-split BLEU    nrefs:1|case:lc|eff:no|tok:none|smooth:none|version:2.6.0
#   detokenised sacreBLEU                nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:2.6.0
#   chrF                                 nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no|version:2.6.0
# Signatures of the embedded corpora:
#   detokenised sacreBLEU                nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0
#   ROUGE                                type:rouge1|case:mixed|tok:char|version:rouge-score-0.1.2

# --- The Transformer and the capsule-Transformer, 40 epochs -----------------------------------------------------------------------------
# The capsule-Transformer was trained on one core with the MALLOC_* settings of docs/speed.md, with two pauses and without interruption.

scripts/prepare-multi30k.sh data/multi30k    # 29,000 / 1,014 / 1,000 / 1,000 / 461 pairs, 9,712 dictionary entries
train() {  # NAME ARCHITECTURE...
  fairseq-train data/multi30k/bin --user-dir fairseq_capsule --arch "${@:2}" \
    --share-all-embeddings --dropout 0.3 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \
    --optimizer adam --adam-betas '(0.9,0.98)' --lr 0.005 --lr-scheduler inverse_sqrt --warmup-updates 2000 \
    --warmup-init-lr 1e-7 --max-tokens 4096 --max-epoch 40 --seed 1 --cpu --keep-last-epochs 10 --save-dir runs/$1
  fairseq-capsule average runs/$1 --last 10 --output $1.pt
}
train baseline transformer --encoder-layers 4 --decoder-layers 4 --encoder-embed-dim 128 --decoder-embed-dim 128 \
  --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256 --encoder-attention-heads 4 --decoder-attention-heads 4
train capsule capsule_transformer_tiny
for split in test test1 test2; do
  for name in baseline capsule; do
    fairseq-generate data/multi30k/bin --user-dir fairseq_capsule --gen-subset $split --beam 5 --remove-bpe --cpu \
      --required-batch-size-multiple 1 --path $name.pt > $name.$split.out
  done
  fairseq-capsule score capsule.$split.out data/multi30k/raw/$split.de --lowercase --against baseline.$split.out
done

# --- Dynamic Past and Future (zheng) ----------------------------------------------------------------------------------------------------
# One after another on two cores, while other programs ran, with the MALLOC_* settings, with pauses and without
# interruption. During these trainings the code of Eq. 7's score was rewritten; the new code differs only by rounding.

row() {  # NAME OVERRIDES...
  fairseq-hydra-train --config-dir configs/multi30k --config-name gdr_transformer task.data=$PWD/data/multi30k/bin \
    task.init_from_baseline=$PWD/baseline.pt checkpoint.save_dir=runs/zheng/$1 "${@:2}"
}
row continued model.past_future=none model.guided_heads=none criterion.bow_weight=0 criterion.bca_weight=0
row gdr model.guided_heads=none criterion.bow_weight=0 criterion.bca_weight=0
row bow model.guided_heads=bow criterion.bca_weight=0 task.eval_overlap=true
row bca model.guided_heads=bca criterion.bow_weight=0
row both task.eval_overlap=true
row no-redundant model.redundant_capsules=0 task.eval_overlap=true
row clf model.past_future=clf task.eval_overlap=true
row attn model.past_future=attn task.eval_overlap=true
fairseq-train data/multi30k/bin -s en -t de --user-dir fairseq_capsule --arch lstm --encoder-embed-dim 256 --encoder-bidirectional \
  --decoder-embed-dim 256 --decoder-out-embed-dim 256 --share-all-embeddings --dropout 0.3 \
  --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam --adam-betas '(0.9,0.98)' --lr 0.002 \
  --lr-scheduler inverse_sqrt --warmup-updates 500 --clip-norm 1 --max-tokens 2048 --max-epoch 12 --seed 1 --cpu --save-dir runs/lstm
lstm_row() {
  fairseq-hydra-train --config-dir configs/multi30k --config-name gdr_lstm task.data=$PWD/data/multi30k/bin \
    task.init_from_baseline=$PWD/runs/lstm/checkpoint_last.pt checkpoint.save_dir=runs/zheng/$1 "${@:2}"
}
lstm_row lstm model.past_future=none model.guided_heads=none criterion.bow_weight=0 criterion.bca_weight=0
lstm_row gdr-lstm task.eval_overlap=true
score() {  # OF AGAINST ROWS...: the last checkpoint, because the learning rate has fallen to zero
  for row in "${@:3}"; do
    for split in test test1 test2; do
      fairseq-generate data/multi30k/bin --user-dir fairseq_capsule --gen-subset $split --beam 5 --remove-bpe --cpu \
        --required-batch-size-multiple 1 --max-tokens 4096 --path runs/$1/$row/checkpoint_last.pt > $row.$split.out
      fairseq-capsule score $row.$split.out data/multi30k/raw/$split.de --lowercase --against $2.$split.out
    done
  done
}
score zheng continued continued gdr bow bca both no-redundant clf attn
score zheng lstm lstm gdr-lstm    # the first row of that table is runs/lstm/checkpoint_last.pt

# --- GRET (weng) ------------------------------------------------------------------------------------------------------------------------

row() {  # NAME OVERRIDES...
  fairseq-hydra-train --config-dir configs/multi30k --config-name gret_transformer task.data=$PWD/data/multi30k/bin \
    task.init_from_baseline=$PWD/baseline.pt checkpoint.save_dir=runs/weng/$1 "${@:2}"
}
row vector model.global_representation=mean model.global_aggregation=none model.global_gate=none
row capsule model.global_aggregation=none model.global_gate=none
row capsule-aggregation model.global_gate=none
row capsule-gate model.global_aggregation=none
row aggregation model.global_representation=mean model.global_gate=none
row aggregation-gate model.global_representation=mean
row gate model.global_representation=mean model.global_aggregation=none
row gret
# baseline.pt, score() and the files continued.*.out are those of the sections above
score weng continued vector capsule capsule-aggregation capsule-gate aggregation aggregation-gate gate gret
for reads in global last mean; do
  fairseq-train data/multi30k/bin --user-dir fairseq_capsule --arch gret_transformer_tiny --share-all-embeddings --dropout 0.3 \
    --task capsule_translation --init-from-baseline runs/weng/gret/checkpoint_last.pt --criterion bag_of_words_probe --probe-reads $reads \
    --optimizer adam --lr 1e-3 --max-tokens 4096 --max-epoch 4 --seed 1 --cpu --no-epoch-checkpoints --save-dir runs/probe-$reads
done
fairseq-capsule probe runs/probe-{global,last,mean}/checkpoint_last.pt --data data/multi30k/bin
python experiments/benchmarks/throughput.py --arch gret_transformer_tiny --mode generate --rounds 3 --batches 2 \
  --option global_gate=none                      # the speed of a row; the options are those of the row

# --- Tables of the papers ---------------------------------------------------------------------------------------------------------------
# Two rows at a time, one core each, by the commands that --dry-run prints, with pauses and without interruption. Simple aggregation
# and CapsNMT were trained twice, with code that is some commits apart; scores and last validation loss are the same. Simple aggregation
# + KD was trained only the first time (commit 06e983a). Not trained: the Transformer + KD, the big rows.

scripts/reproduce.sh duan-table2 --scale small
scripts/prepare-multi30k.sh data/multi30k         # with --codes and --dict of the teacher's data
for table in wang-table1 wang-table2; do
  scripts/reproduce.sh $table --scale small --baseline baseline.pt    # the teacher
done
scripts/reproduce.sh weng-table2 --scale small
make demo
make demo-summarization
