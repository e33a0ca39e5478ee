#!/usr/bin/env python3
"""Compare our Dynamic Past and Future with the code of its authors, difference by difference.

    git clone https://github.com/zhengzx-nlp/dynamic-nmt dynamic-nmt
    experiments/authors_layer.py dynamic-nmt

Both have the same random weights and inputs, in float64. With all differences that are listed here, ours must equal
theirs to 1e-6, otherwise the list is not complete. A line says how far each difference alone moves our result, relative
to it. Their code runs here: clone it from where you trust it.
"""

import argparse
import sys
from pathlib import Path
from unittest import mock

import torch
from torch import nn

from capsule_routing.errors import UserError
from capsule_routing.functions import dynamic_routing
from capsule_routing.losses import bag_of_words_loss, content_agreement_loss
from capsule_routing.modules import GuidedDynamicRouting, HolisticContext

WORDS, WIDTH, CAPSULES, SMOOTHING = 20, 16, 6, 0.1
LENGTHS = (6, 3, 4)  # of targets, the longest first
SOURCES = (5, 7, 4)
# The sizes of a model of theirs without layers: its states are embeddings.
CONFIG = {
    "n_layers": 0,
    "n_head": 2,
    "d_word_vec": WIDTH,
    "d_model": WIDTH,
    "d_inner_hid": 24,
    "dropout": 0.0,
    "proj_share_weight": True,
    "label_smoothing": SMOOTHING,
    "capsule_type": "output",
    "d_capsule": 20,
    "num_capsules": 4,
    "null_capsule": True,
    "apply_word_prediction_loss": True,
    "auxiliary_loss": ["bca"],
}


def capsules(given, on):
    """The routing. Returns capsules `[B, T, J, d_c]`."""
    layer, state, padding = given.layer, given.state, given.source_padding
    if "layer norm of the state" in on:
        state = given.model.decoder.pre_capsule_layer_norm(state)
    votes = torch.einsum("bid,jdc->bijc", given.source, layer.route_weights).unsqueeze(1)
    parts = votes @ layer.linear_u_hat.weight.t() + (state @ layer.linear_c.weight.t())[:, :, None, None]
    if "biases in Eq. 7" in on:
        parts = parts + layer.linear_u_hat.bias + layer.linear_v.bias

    def agreement(_, capsules):
        scores = (parts + (capsules @ layer.linear_v.weight.t()).unsqueeze(2)).tanh() @ layer.linear_delta.weight[0]
        if "second tanh in Eq. 7" in on:
            scores = scores.tanh()
        if "factor 1/√d_c in Eq. 7" in on:
            scores = scores / votes.size(-1) ** 0.5
        return scores.masked_fill(padding[:, None, :, None], 0)

    mask = None if "padding votes" in on else padding.unsqueeze(1)
    logits = votes.new_zeros(*state.shape[:2], votes.size(2), CAPSULES)
    return dynamic_routing(votes, 3, padding_mask=mask, agreement=agreement, initial_logits=logits).capsules


def context(given, on):
    """The decoder's output `[B, T, C]` from the capsules of both."""
    ffn, inputs = given.model.decoder.out_and_cap_ffn, torch.cat([given.state, given.past, given.future], -1)
    if "layer norm of [z; Ω^P; Ω^F]" in on:
        inputs = ffn.layer_norm(inputs)
    output = given.state + ffn.w_2(ffn.w_1(inputs).relu())
    return given.model.decoder.out_layer_norm(output) if "layer norm of o" in on else output


def bag_loss(given, on):
    """`L_BoW`, with means: for each step the distribution of the bag, and its divergence from the prediction."""
    total = 0
    heads = given.model.wp_past.linear, given.model.wp_future.linear
    for b, length in enumerate(LENGTHS):
        start, *words = given.labels[b, : length + 1].tolist()
        for contents, head in zip((given.past, given.future), heads):
            is_past, losses, empty = contents is given.past, [], 0
            steps = max(LENGTHS) if is_past and "steps of padding in PAST" in on else length
            for t in range(steps):
                bag = words[:t] if is_past else words[t + ("FUTURE without y_t" in on) :]
                if is_past and "the start of the sentence in PAST" in on:
                    bag = [start, *bag]
                empty += not bag
                if bag:
                    losses.append(of_bag(given, on, bag, contents[b, t], head))
            total = total + sum(losses) / (steps - empty * ("mean over bags that are not empty" in on))
    return total


def of_bag(given, on, bag, content, head):
    """The loss of one bag."""
    features = head.weight @ content
    if "bias and tanh of the heads of BoW" in on:
        features = (features + head.bias).tanh()
    logits, padding = given.embeddings @ features, given.padding
    if "padding is no word" in on:
        logits = torch.cat([logits[:padding], logits.new_full((1,), -torch.inf), logits[padding + 1 :]])
    target = sum(nn.functional.one_hot(torch.tensor(word), WORDS).double() for word in bag) / len(bag)
    if "label smoothing in BoW" in on:
        target = torch.where(target > 0, (1 - SMOOTHING) * target, SMOOTHING / (WORDS - 2))
        target[padding] = 0
    log_probabilities = logits.log_softmax(0).masked_fill(target == 0, 0)
    entropy = torch.special.entr(target).sum() if "entropy subtracted in BoW" in on else 0
    return -(target * log_probabilities).sum() - entropy


def agreement_loss(given, on):
    """`L_BCA`, with means."""
    total = 0
    states = given.output if "o in place of z in BCA" in on else given.state
    bias = "bias of the heads of BCA" in on
    heads = given.model.linear_bca_past, given.model.linear_bca_future
    past, future = (
        nn.functional.linear(contents, head.weight, head.bias if bias else None)
        for contents, head in zip((given.past, given.future), heads)
    )
    if "PAST capsules compared with both in BCA" in on:
        future = past
    for b, length in enumerate(LENGTHS):
        end = states.size(1) if "padding in the means of FUTURE" in on else length
        steps = length + ("a step after the end, in BCA" in on and length < max(LENGTHS))
        distances = []
        for t in range(steps):
            before = states[b, : t + ("PAST without z_t in BCA" not in on)]
            mean = before.mean(0) if len(before) else torch.zeros_like(states[b, 0])
            distances.append((past[b, t] - mean).square().mean())
        total = total + sum(distances) / steps
        total = total + sum((future[b, t] - states[b, t:end].mean(0)).square().mean() for t in range(length)) / length
    return total


DIFFERENCES = {
    capsules: [
        "padding votes",
        "layer norm of the state",
        "biases in Eq. 7",
        "second tanh in Eq. 7",
        "factor 1/√d_c in Eq. 7",
    ],
    context: ["layer norm of [z; Ω^P; Ω^F]", "layer norm of o"],
    bag_loss: [
        "the start of the sentence in PAST",
        "steps of padding in PAST",
        "FUTURE without y_t",
        "mean over bags that are not empty",
        "bias and tanh of the heads of BoW",
        "padding is no word",
        "label smoothing in BoW",
        "entropy subtracted in BoW",
    ],
    agreement_loss: [
        "o in place of z in BCA",
        "PAST without z_t in BCA",
        "padding in the means of FUTURE",
        "PAST capsules compared with both in BCA",
        "a step after the end, in BCA",
        "bias of the heads of BCA",
    ],
}


class Given:
    """The weights, the inputs and the results of a model of the authors."""

    def __init__(self, theirs):
        torch.manual_seed(1)
        self.padding = theirs.PAD
        self.model = model = theirs.CapsuleTransformer(WORDS, WORDS, **CONFIG).double()
        for parameter in model.parameters():
            nn.init.normal_(parameter, 0, 0.5)
        self.layer, self.embeddings = model.decoder.final_capsule_layer, model.generator.proj.linear.weight
        source = torch.full((3, max(SOURCES)), self.padding)
        self.labels = torch.full((3, max(LENGTHS) + 1), self.padding)
        for b in range(3):
            source[b, : SOURCES[b]] = torch.randint(4, WORDS, (SOURCES[b],))
            self.labels[b, : LENGTHS[b] + 1] = torch.randint(4, WORDS, (LENGTHS[b] + 1,))
        read = self.labels[:, :-1]
        self.source, self.source_padding = model.encoder(source)
        self.state = model.decoder.embeddings(read)
        results = model.decoder(read, self.source, self.source_padding)
        self.output, self.past, self.future = (results[name] for name in ("output", "past_capsules", "future_capsules"))
        self.results = self.losses(theirs, model(source, read))

    def losses(self, theirs, predicted):
        """The results that ours are compared with. `critic` of their model reads a name that is not defined."""
        read, words = self.labels[:, :-1], self.labels[:, 1:]
        criterion, distance = theirs.MultiTargetNMTCriterion(label_smoothing=SMOOTHING), theirs.MSELoss()
        bags = 0
        for name, convert, labels in (
            ("past", theirs.convert_to_past_labels, read),
            ("future", theirs.convert_to_future_labels, words),
        ):
            of_bags, scores = convert(labels)
            logs = predicted[f"logprobs_{name}"]  # newer PyTorch: 0 · -∞ in the divergence is not 0
            logs = logs.masked_fill(logs.isinf(), 0)
            bags = bags + criterion._compute_loss(logs, of_bags, target_scores=scores).sum()
        means = theirs.get_prev_sequence_average, theirs.get_sub_sequence_average
        agreements = sum(
            distance._compute_loss(predicted["past_capsules"], mean(self.output), labels.ne(self.padding)).sum()
            for mean, labels in zip(means, (read, words))
        )
        routed, _ = self.layer.forward_sequence(
            self.source, self.source_padding, self.model.decoder.pre_capsule_layer_norm(self.state)
        )
        return {capsules: routed, context: self.output, bag_loss: bags, agreement_loss: agreements}

    def ours(self):
        """The same four results of this package."""
        layer, ffn, size = self.layer, self.model.decoder.out_and_cap_ffn, CONFIG["d_capsule"] // 2
        routing = GuidedDynamicRouting(WIDTH, WIDTH, CAPSULES, CONFIG["d_capsule"] // CONFIG["num_capsules"]).double()
        module = HolisticContext(
            routing, capsules_per_content=2, content_dim=size, state_dim=WIDTH, ffn_dim=CONFIG["d_inner_hid"]
        ).double()
        blocks = layer.linear_c.weight, layer.linear_u_hat.weight, layer.linear_v.weight
        weights = {
            "routing.vote_weight": layer.route_weights,
            "routing.agreement_weight": torch.cat(blocks, 1),
            "routing.agreement_vector": layer.linear_delta.weight[0],
            **{f"feed_forward.0.{name}": value for name, value in ffn.w_1.named_parameters()},
            **{f"feed_forward.2.{name}": value for name, value in ffn.w_2.named_parameters()},
        }
        module.load_state_dict(weights)
        contents = torch.cat([self.past, self.future], -1)
        words, heads = self.labels[:, 1:], (self.model.wp_past.linear, self.model.wp_future.linear)
        bags = [part @ head.weight.t() for part, head in zip((self.past, self.future), heads)]
        maps = self.model.linear_bca_past.weight, self.model.linear_bca_future.weight
        padding = words.eq(self.padding)
        return {
            capsules: routing(self.source, self.state, self.source_padding).capsules,
            context: self.state + module.feed_forward(torch.cat([self.state, contents], -1)),
            bag_loss: bag_of_words_loss(*bags, self.embeddings, words, padding),
            agreement_loss: content_agreement_loss(self.past, self.future, self.state, *maps, padding),
        }


def compare(given):
    """Yield each difference and how far it moves our result.

    Raises:
        UserError: something else differs.
    """
    ours = given.ours()
    for stage, names in DIFFERENCES.items():
        agree(stage(given, set()), ours[stage], f"{stage.__name__} without differences and our code")
        agree(stage(given, set(names)), given.results[stage], f"{stage.__name__} with all differences and theirs")
        for name in names:
            moved = stage(given, {name}) - ours[stage]
            yield name, float(moved.norm() / ours[stage].norm())


def agree(one, other, what):
    distance = float((one - other).abs().max())
    if not distance < 1e-6:
        raise UserError(f"{what} differ by {distance:.2g}: a difference is not listed")


def load(folder):
    """Import the authors' code. It is of PyTorch 0.4.1, which had no boolean masks."""
    if not (folder / "src/models/capsule_transformer.py").is_file():
        raise UserError(f"{folder}: no src/models/capsule_transformer.py; name a clone of zhengzx-nlp/dynamic-nmt")
    sys.path.insert(0, str(folder))
    from src.data.vocabulary import PAD
    from src.models.capsule_transformer import CapsuleTransformer
    from src.modules import criterions, word_predictor
    from src.utils import nn_ops

    names = {**vars(criterions), **vars(word_predictor), **vars(nn_ops)}
    return argparse.Namespace(**{**names, "PAD": PAD, "CapsuleTransformer": CapsuleTransformer})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR", help="a clone of zhengzx-nlp/dynamic-nmt")
    args = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    fill = torch.Tensor.masked_fill_
    try:
        theirs = load(args.folder)
        with (
            torch.no_grad(),
            mock.patch.object(torch.Tensor, "float", torch.Tensor.double),
            mock.patch.object(torch.Tensor, "masked_fill_", lambda self, mask, value: fill(self, mask.bool(), value)),
        ):
            for name, moved in compare(Given(theirs)):
                print(f"{moved:8.4f}  {name}")
    except UserError as error:
        raise SystemExit(f"{parser.prog}: {error}") from None
    print("with all of them ours equals theirs to 1e-6")


if __name__ == "__main__":
    main()
