# The commands of the statistics in docs/results.md, for seed 1, from the root of the repository. They need the trained checkpoints.
# The couplings are logged by `fairseq-validate … --model-overrides "{'log_routing':True}"`.

runs=runs/paper/multi30k
routed=$runs/continued+decoder_routing-horizontal+encoder_routing-both+on-transformer/seed1/checkpoint_last.pt
gret=$runs/gret_transformer+on-transformer/seed1/checkpoint_last.pt
gdr=$runs/gdr_transformer+guided_reduction-sum+on-transformer
fairseq-capsule analyze iterations $routed $gret $gdr/seed1/checkpoint_last.pt --names "routed attention" --names GRET --names GDR --iterations 1-5 \
  --data data/multi30k/bin --split valid --lowercase --out experiments/results/analysis
fairseq-capsule analyze overlap $gdr/seed1/checkpoint_last.pt $gdr/seed2/checkpoint_last.pt \
  $runs/combined+guided_reduction-sum+on-transformer/seed1/checkpoint_last.pt --names "GDR, seed 1" --names "GDR, seed 2" --names "all three, seed 1" \
  --data data/multi30k/bin --split valid --out experiments/results/analysis
after=decoder_norms-after+optimization.clip_norm-0
fairseq-capsule nll --data data/multi30k/bin --split train "$runs/capsnmt+$after/seed1/checkpoint_avg_table.pt" \
  "$runs/capsnmt+aggregation_capsules-24+$after/seed1/checkpoint_avg_table.pt" $runs/transformer/seed3/checkpoint_avg_table.pt \
  "$runs/lstm+dataset.max_tokens-4096+optimization.lr-[0.005]+size-as_capsnmt/seed1/checkpoint_avg_table.pt"
python experiments/gradient_norms.py $routed $gret $gdr/seed1/checkpoint_last.pt \
  --baseline $runs/transformer/seed1/checkpoint_avg_table.pt --data data/multi30k/bin
# eflomal takes no seed. The committed figures were made with links of the tokenised text, which has words where the data has <unk>.
fairseq-capsule analyze assignment $runs/gdr_transformer+on-transformer/seed1/checkpoint_last.pt $gdr/seed1/checkpoint_last.pt \
  --names "GDR, mean" --names "GDR, sum" --data data/multi30k/bin --split test \
  --train data/multi30k/tokenised/train.en data/multi30k/tokenised/train.de --out experiments/results/analysis
fairseq-capsule analyze routing $runs/capsnmt+aggregation_scale-1/seed2/checkpoint_avg_table.pt --data data/multi30k/bin --split test \
  --out $runs/routing
# The fine-tuned models of `scripts/reproduce.sh ablation --scale paper`, seeds 6 to 10.
routed=() outputs=() names=()
for system in continued gdr_transformer gret_transformer; do
    for seed in {6..10}; do
        run=$runs/$system+on-transformer/seed$seed
        outputs+=("$run/evaluation/test/generate.out")
        names+=(--names "$system, seed $seed")
        [[ $system == continued ]] || routed+=("$run/checkpoint_last.pt")
    done
done
fairseq-capsule analyze lengths "${outputs[@]}" "${names[@]}" --groups 4 --lowercase --out experiments/results/analysis/ablation
fairseq-capsule analyze routing "${routed[@]}" "${names[@]:10}" --data data/multi30k/bin --split test --out experiments/results/analysis/ablation
# The assignment on the toy corpus, with the links that it contains.
scripts/prepare-toy.sh data/toy
train() { scripts/train.sh configs/toy/$1.yaml data/toy/bin $2 "${@:3}" dataset.disable_validation=false; }
train transformer runs/toy/transformer
train_gdr() { train gdr_transformer runs/toy/$1 task.init_from_baseline=runs/toy/transformer/checkpoint_last.pt "${@:2}"; }
train_gdr gdr
train_gdr gdr-sum model.guided_reduction=sum
train_gdr gdr-1 model.past_future_iterations=1
train_gdr clf model.past_future=clf
train_gdr attn model.past_future=attn
fairseq-capsule analyze assignment runs/toy/{gdr,gdr-sum,gdr-1,clf,attn}/checkpoint_last.pt \
  --names "GDR, mean" --names "GDR, sum" --names "GDR, one iteration" --names CLF --names ATTN --data data/toy/bin --split test \
  --alignments data/toy/raw/alignments/test.align --out experiments/results/analysis/toy
