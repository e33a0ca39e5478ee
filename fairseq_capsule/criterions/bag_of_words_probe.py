"""How much of the target a vector of the source knows: a bag-of-words predictor (Weng et al. 2020, §3.6, Table 5)."""

from dataclasses import dataclass, field
from typing import List

import torch
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from torch import Tensor

from fairseq_capsule.errors import UserError
from fairseq_capsule.losses import bag_prediction_loss, bag_recall
from fairseq_capsule.models.attentions import encoder_states
from fairseq_capsule.modules.feed_forward import feed_forward

READS = ChoiceEnum(["global", "last", "mean"])
TOPS = (200, 500, 1000)


@dataclass
class BagOfWordsProbeConfig(FairseqDataclass):
    probe_reads: READS = field(
        default="global",
        metadata={"help": "what the predictor reads: the sentence's vector, the last encoder state, or their mean"},
    )


@register_criterion("bag_of_words_probe", dataclass=BagOfWordsProbeConfig)
class BagOfWordsProbe(FairseqCriterion):
    """Trains a feed-forward predictor of the target's words on a frozen model; needs `--task capsule_translation`,
    and with several processes `--ddp-backend legacy_ddp`: pytorch's own refuses a model without a gradient.

    The predictor maps the vector to the size of the output embeddings, `d → 4d → C`, and its logits are products with
    these, which are the model's and stay as they are. The bag is the target without its end of sentence. The loss is
    `−mean_τ log p(y_τ)` a sentence, in nats; validation logs `bag_recall_K` for K of 200, 500 and 1000.

    Raises:
        UserError: the model has no such vector, or another task does not let a criterion see the model.
    """

    def __init__(self, task, probe_reads):
        super().__init__(task)
        self.reads = str(probe_reads)
        self.eos = task.target_dictionary.eos()
        self.predictor = None

    def attach(self, model) -> None:
        """Before training: freeze the model, and build the predictor at its sizes."""
        if self.reads == "global" and not _vectors(model):
            raise UserError(
                "--probe-reads global: no mechanism of the model gives a vector for the sentence; read last or mean"
            )
        model.requires_grad_(False)
        input_dim, embed_dim = _source_dim(model), output_embeddings(model).size(1)
        self.predictor = feed_forward(input_dim, 4 * input_dim, embed_dim)

    def logits(self, model, sample) -> Tensor:
        """The predictor's logits `[B, V]`."""
        if self.predictor is None:
            raise UserError("--criterion bag_of_words_probe needs --task capsule_translation")
        with torch.no_grad():
            vector = source_vector(model, sample["net_input"], self.reads)
            embeddings = output_embeddings(model)
        return self.predictor(vector) @ embeddings.t()

    def forward(self, model, sample, reduce=True):
        """The loss summed over the batch, the number of sentences, what is logged."""
        logits, target = self.logits(model, sample), sample["target"]
        mask = target.eq(self.padding_idx) | target.eq(self.eos)
        loss = bag_prediction_loss(logits, target, mask)
        sample_size = target.size(0)
        logging_output = {
            "loss": loss.data,
            "ntokens": sample["ntokens"],
            "nsentences": sample_size,
            "sample_size": sample_size,
        }
        if not self.training:
            for top in TOPS:
                logging_output[f"bag_recall_{top}"] = bag_recall(logits, target, mask, top)
        return loss, sample_size, logging_output

    @classmethod
    def reduce_metrics(cls, logging_outputs) -> None:
        """Means over sentences."""
        number = sum(log.get("nsentences", 0) for log in logging_outputs)
        for name in ("loss", *(f"bag_recall_{top}" for top in TOPS)):
            if any(name in log for log in logging_outputs):
                metrics.log_scalar(name, sum(log.get(name, 0) for log in logging_outputs) / number, number, round=4)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def source_vector(model, net_input, reads: str) -> Tensor:
    """The vector `[B, C]` that `reads` names, of a model in eval mode, whatever mode it is in."""
    training = model.training
    model.eval()
    encoded = model.encoder(net_input["src_tokens"], src_lengths=net_input["src_lengths"])
    model.train(training)
    if reads == "global":
        return encoded[_vectors(model)[0]][0]
    states, padding_mask = encoder_states(encoded)
    if reads == "last":
        positions = torch.arange(states.size(1), device=states.device)
        last = positions.masked_fill(padding_mask, -1).amax(1)
        return states[torch.arange(len(states), device=states.device), last]
    valid = (~padding_mask).unsqueeze(-1).to(states.dtype)
    return (states * valid).sum(1) / valid.sum(1)


def _vectors(model) -> List[str]:
    """The names under which mechanisms put a vector for the sentence into the encoder's output."""
    return [mechanism.name for mechanism in getattr(model.encoder, "mechanisms", ()) if mechanism.encodes]


def _source_dim(model) -> int:
    encoder = model.encoder
    return encoder.output_units if hasattr(encoder, "output_units") else encoder.embed_tokens.embedding_dim


def output_embeddings(model) -> Tensor:
    """`E` `[V, C]` of a model of this package or of fairseq's Transformer or LSTM."""
    decoder = model.decoder
    if hasattr(decoder, "output_embeddings"):
        return decoder.output_embeddings
    if hasattr(decoder, "output_projection"):
        return decoder.output_projection.weight
    return decoder.embed_tokens.weight if decoder.share_input_output_embed else decoder.fc_out.weight
