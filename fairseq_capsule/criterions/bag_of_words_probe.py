"""A probe that predicts the target's bag of words from a vector of the source (Weng et al. 2020, §3.6, Table 5)."""

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from fairseq.models import BaseFairseqModel
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from capsule_routing.errors import UserError
from capsule_routing.losses import bag_prediction_loss, bag_recall
from capsule_routing.modules.layers import feed_forward
from fairseq_capsule.models.outputs import encoder_states, evaluating, output_embeddings
from fairseq_capsule.options import setting

NAME = "bag_of_words_probe"
READS = ChoiceEnum(["global", "last", "mean"])
TOPS = (200, 500, 1000)


@dataclass
class BagOfWordsProbeConfig(FairseqDataclass):
    probe_reads: READS = setting(
        "global", "what the predictor reads: the sentence's vector, the last encoder state, or their mean"
    )


@register_criterion(NAME, dataclass=BagOfWordsProbeConfig)
class BagOfWordsProbe(FairseqCriterion):
    """Train a feed-forward predictor of the target's words on a frozen model.

    It requires `--task capsule_translation`, which takes fairseq's `legacy_ddp` for several processes: torch's
    DistributedDataParallel refuses a model without gradients.

    The predictor maps the vector to the size of the output embeddings, `d → 4d → C`. Its logits are products with these
    embeddings, which belong to the model and are frozen. The bag is the target without end of sentence. The loss of a
    sentence is `−mean_τ log p(y_τ)`, in nats. Validation logs `bag_recall_K` for K = 200, 500 and 1000.
    """

    def __init__(self, task: FairseqTask, probe_reads: Any):
        super().__init__(task)
        self.reads = str(probe_reads)
        self.eos = task.target_dictionary.eos()
        self.predictor: Optional[nn.Module] = None

    def attach(self, model: BaseFairseqModel) -> None:
        """Freeze the model and build the predictor for its sizes. The task calls it before training."""
        sentence = {"src_tokens": torch.full((1, 1), self.eos), "src_lengths": torch.ones(1, dtype=torch.long)}
        size = source_vector(model, sentence, self.reads).size(1)
        model.requires_grad_(False)
        self.predictor = feed_forward(size, 4 * size, output_embeddings(model).size(1))

    def logits(self, model: BaseFairseqModel, sample: Mapping[str, Any]) -> Tensor:
        """Compute the predictor's logits `[B, V]`."""
        if self.predictor is None:
            raise UserError("--criterion bag_of_words_probe needs --task capsule_translation")
        scores: Tensor = self.predictor(source_vector(model, sample["net_input"], self.reads))
        return scores @ output_embeddings(model).detach().t()

    def forward(
        self, model: BaseFairseqModel, sample: Mapping[str, Any], reduce: bool = True
    ) -> Tuple[Tensor, int, Dict[str, Any]]:
        """Compute the loss summed over the batch, the number of sentences, and the values to log."""
        logits, target = self.logits(model, sample), sample["target"]
        mask = target.eq(self.padding_idx) | target.eq(self.eos)
        loss = bag_prediction_loss(logits, target, mask)
        sample_size = target.size(0)
        counts = {"ntokens": sample["ntokens"], "nsentences": sample_size, "sample_size": sample_size}
        logging_output = {"loss": loss.data, **counts}
        if not self.training:
            for top in TOPS:
                logging_output[f"bag_recall_{top}"] = bag_recall(logits, target, mask, top)
        return loss, sample_size, logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs: List[Dict[str, Any]]) -> None:
        """Log means over sentences."""
        number = sum(log.get("nsentences", 0) for log in logging_outputs)
        for name in ("loss", *(f"bag_recall_{top}" for top in TOPS)):
            if any(name in log for log in logging_outputs):
                metrics.log_scalar(name, sum(log.get(name, 0) for log in logging_outputs) / number, number, round=4)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def source_vector(model: BaseFairseqModel, net_input: Mapping[str, Tensor], reads: str) -> Tensor:
    """Compute the vector `[B, C]` that `reads` names, in eval mode and without gradients.

    A UserError says if no mechanism gives such a vector of the size of the encoder's states.
    """
    with evaluating(model):
        encoded = model.encoder(net_input["src_tokens"], src_lengths=net_input["src_lengths"])
    states, padding_mask = encoder_states(encoded)
    if reads == "global":
        name = next((name for name in getattr(model.encoder, "mechanism_parts", {}).values() if name in encoded), None)
        problem = "no mechanism of the model gives a vector for the sentence"
        if name is not None:
            vector: Tensor = encoded[name][0]
            if vector.shape[1:] == states.shape[2:]:
                return vector
            needed = [len(vector), states.size(2)]
            problem = f"{name} gives a tensor {list(vector.shape)}, not one vector for each sentence {needed}"
        raise UserError(f"--probe-reads global: {problem}; read last or mean")
    if reads == "last":
        positions = torch.arange(states.size(1), device=states.device)
        last = positions.masked_fill(padding_mask, -1).amax(1)
        return states[torch.arange(len(states), device=states.device), last]
    valid = (~padding_mask).unsqueeze(-1).to(states.dtype)
    return (states * valid).sum(1) / valid.sum(1)
