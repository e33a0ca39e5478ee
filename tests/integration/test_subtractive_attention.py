"""examples/subtractive_attention: every form against loops over its definition, and the invariants."""

import math
import subprocess
import sys
from argparse import Namespace

import pytest
import torch
from fairseq import utils

from fairseq_capsule.testing import INVARIANTS, build_small
from tests.integration.commands import REPOSITORY

FORMS = (
    *("temperature", "scale", "qk_norm", "one_iteration", "three_iterations", "temperature_one_iteration", "others"),
    *("positions", "qk_norm_positions", "qk_norm_query", "qk_norm_mean", "qk_norm_direction"),
    *("heads", "added", "positive", "accepted", "mean", "mean_of_others", "mean_of_all", "query", "coverage"),
)
B, H, L, D = 2, 2, 5, 3
HAVE_NO_GAIN = ("scale", "added")
START_ELSEWHERE = (*(form for form in FORMS if form.startswith("qk_norm")), "positive")


@pytest.fixture(scope="module", autouse=True)
def example():
    utils.import_user_module(Namespace(user_dir=str(REPOSITORY / "examples/subtractive_attention")))
    import subtractive_attention

    return subtractive_attention


def test_all_forms_are_tested(example):
    assert tuple(example.FORMS) == FORMS


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.__name__)
def test_each_form_keeps_the_invariants(invariant, form):
    invariant("trial_transformer_tiny", {"subtraction": form})


@pytest.mark.parametrize("form", [form for form in FORMS if form not in (*HAVE_NO_GAIN, *START_ELSEWHERE)])
def test_a_new_model_translates_as_its_baseline(form):
    torch.manual_seed(1)
    plain = build_small("trial_transformer_tiny", {"subtraction": "none"})
    model = build_small("trial_transformer_tiny", {"subtraction": form})
    missing = model.load_state_dict(plain.state_dict(), strict=False)
    assert not missing.unexpected_keys
    for name in missing.missing_keys:  # the small models have random parameters
        torch.nn.init.zeros_(model.get_parameter(name))
    tokens, previous = torch.tensor([[5, 6, 7, 2], [5, 8, 2, 1]]), torch.tensor([[2, 5, 6, 7], [2, 5, 8, 1]])
    inputs = tokens, tokens.ne(1).sum(1), previous
    words = previous.ne(1)
    torch.testing.assert_close(model.eval()(*inputs)[0][words], plain.eval()(*inputs)[0][words])


def _inputs(causal):
    """Return queries, keys, logits and the padding mask; the second sentence is shorter, padded on the right."""
    torch.manual_seed(1)
    mask = torch.zeros(B, L, dtype=torch.bool)
    mask[1, 3:] = True
    queries, keys = (
        torch.randn(B, H, L, D, dtype=torch.float64).masked_fill(mask[:, None, :, None], 0) for _ in range(2)
    )
    return queries, keys, queries @ keys.transpose(2, 3), mask


def _build(example, form, causal):
    part = example.FORMS[form](H, causal).double()
    for parameter in part.parameters():
        torch.nn.init.normal_(parameter)
    return part


def _squash(vector):
    norm = math.sqrt(sum(x * x for x in vector))
    return [x * norm / (1 + norm * norm) for x in vector]


def _softmax(logits):
    exponentials = [math.exp(x) for x in logits]
    return [x / sum(exponentials) for x in exponentials]


def _literal_capsules(part, logits, n, causal):
    """Return the changed logits of one sentence of `n` words: lists of heads, rows and keys."""
    keys = [t + 1 if causal else n for t in range(n)]
    e = [[[logits[h][t][k] if k <= t or not causal else 0.0 for k in range(L)] for t in range(n)] for h in range(H)]
    gains = {
        name: [1.0] * H if gain.kind == "one" else gain().view(-1).tolist()
        for name, gain in (("positions", part.positions_gain), ("heads", part.heads_gain))
        if gain is not None
    }
    changed = [[list(logits[h][t]) for t in range(n)] for h in range(H)]
    if "positions" in gains:
        for l in range(n):
            words = range(l + 1) if part.own else range(l)
            b = {(t, h): 0.0 for t in range(l + 1) for h in range(H)}
            for _ in range(part.iterations):
                share = {t: _softmax([b[t, h] for h in range(H)]) for t in range(l + 1)}
                omega = [_squash([sum(share[t][h] * e[h][t][k] for t in words) for k in range(L)]) for h in range(H)]
                for t, h in b:
                    b[t, h] += sum(e[h][t][k] * omega[h][k] for k in range(L)) / math.sqrt(keys[t])
            for h in range(H):
                for k in range(L):
                    changed[h][l][k] += gains["positions"][h] * math.sqrt(keys[l]) * omega[h][k]
    if "heads" in gains:
        b = [[0.0] * n for _ in range(H)]
        for _ in range(part.iterations):
            share = [_softmax(b[h]) for h in range(H)]
            omega = [_squash([sum(share[h][l] * e[h][l][k] for h in range(H)) for k in range(L)]) for l in range(n)]
            for h in range(H):
                for l in range(n):
                    b[h][l] += sum(e[h][l][k] * omega[l][k] for k in range(L)) / math.sqrt(n)
        accepted = [1.0] * H
        if part.acceptance is not None:
            weight, bias = part.acceptance.weight.tolist(), part.acceptance.bias.tolist()
            means = [sum(b[h]) / n for h in range(H)]
            accepted = _softmax([bias[h] + sum(weight[h][g] * means[g] for g in range(H)) for h in range(H)])
            accepted = [H * share for share in accepted]
        for h in range(H):
            for l in range(n):
                for k in range(L):
                    changed[h][l][k] += gains["heads"][h] * accepted[h] * math.sqrt(n) * omega[l][k]
    return changed


@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize(
    "form", ["one_iteration", "three_iterations", "others", "positions", "heads", "added", "positive", "accepted"]
)
def test_capsules_equal_loops(example, form, causal):
    if form == "heads" and causal:
        assert example.FORMS[form](H, causal) is None
        return
    _, _, logits, mask = _inputs(causal)
    part = _build(example, form, causal)
    changed = part(logits, mask)
    for b, n in ((0, L), (1, 3)):
        expected = torch.tensor(_literal_capsules(part, logits[b].tolist(), n, causal), dtype=torch.float64)
        torch.testing.assert_close(changed[b, :, :n], expected, rtol=0, atol=1e-12)
        assert not changed[b, :, n:].any()


def _row(form, e, g, q, k, h, l, n, causal):
    """Return row `l` of head `h` of one sentence by the definition of a form."""
    zeroed = [[[e[i][t][j] if j <= t or not causal else 0.0 for j in range(L)] for t in range(n)] for i in range(H)]
    if form == "temperature":
        return [(1 + g[h]) * x for x in e[h][l]]
    if form == "scale":
        return [0.3 * x for x in e[h][l]]
    if form == "qk_norm":
        q, keys = q[h][l], k[h]
        norms = [math.sqrt(sum(x * x for x in v) / D) or 1.0 for v in (q, *keys)]
        return [
            (1 + g[h]) * sum(a * b for a, b in zip(q, key)) / norms[0] / norm / math.sqrt(D)
            for key, norm in zip(keys, norms[1:])
        ]
    words = {
        "mean": range(l + 1),
        "query": range(l + 1),
        "mean_of_others": range(l),
        "mean_of_all": range(l + 1 if causal else n),
    }[form]
    rows = e if form == "query" else zeroed
    return [x + g[h] * sum(rows[h][t][j] for t in words) / max(len(words), 1) for j, x in enumerate(e[h][l])]


@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize("form", ["temperature", "scale", "qk_norm", "mean", "mean_of_others", "mean_of_all", "query"])
def test_simple_forms_equal_loops(example, form, causal):
    queries, keys, logits, mask = _inputs(causal)
    part = _build(example, form, causal)
    gains = part.gain().view(-1).tolist() if hasattr(part, "gain") else None
    changed = part(logits, mask, (queries, keys))
    for b, n in ((0, L), (1, 3)):
        arguments = logits[b].tolist(), gains, queries[b].tolist(), keys[b].tolist()
        expected = [[_row(form, *arguments, h, l, n, causal) for l in range(n)] for h in range(H)]
        torch.testing.assert_close(changed[b, :, :n], torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)
        assert not changed[b, :, n:].any()


def test_coverage_equals_loops(example):
    logits = torch.randn(B, H, 4, L, dtype=torch.float64)
    part = example.Coverage(H).double()
    torch.nn.init.normal_(part.gain.weight)
    changed = part(logits)
    for h, gain in enumerate(part.gain().view(-1).tolist()):
        for t in range(4):
            expected = logits[:, h, t] + gain * (logits[:, h, :t].mean(1) if t else 0)
            torch.testing.assert_close(changed[:, h, t], expected, rtol=0, atol=1e-12)


def test_the_direction_of_earlier_queries_equals_loops(example):
    queries, keys, logits, mask = _inputs(True)
    part = _build(example, "qk_norm_direction", True)
    changed = part(logits, mask, (queries, keys))

    def normed(vector):
        return vector / (vector.square().mean() + torch.finfo(vector.dtype).eps).sqrt()

    for b, n in ((0, L), (1, 3)):
        for h in range(H):
            scale, gain = 1 + part.gain()[h].item(), part.direction_gain()[h].item()
            for l in range(n):
                direction = normed(sum(normed(queries[b, h, t]) for t in range(l + 1)))
                query = scale * normed(queries[b, h, l]) + gain * direction
                expected = torch.stack([query @ normed(keys[b, h, k]) / math.sqrt(D) for k in range(n)])
                torch.testing.assert_close(changed[b, h, l, :n], expected, rtol=0, atol=1e-12)
        assert not changed[b, :, n:].any() and not changed[b, :, :, n:].any()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("form", "first", "second"),
    [
        ("temperature_one_iteration", "temperature", "one_iteration"),
        ("qk_norm_positions", "qk_norm", "positions"),
        ("qk_norm_query", "qk_norm", "query"),
        ("qk_norm_mean", "qk_norm", "mean"),
    ],
)
def test_two_changes_follow_each_other(example, form, first, second, causal):
    queries, keys, logits, mask = _inputs(causal)
    both, *parts = (_build(example, name, causal) for name in (form, first, second))
    for part, trained in zip(parts, both):
        part.load_state_dict(trained.state_dict())
    changed = parts[0](logits, mask, (queries, keys))
    torch.testing.assert_close(both(logits, mask, (queries, keys)), parts[1](changed, mask))


def test_gains_are_logged_by_attention_and_head(example):
    from fairseq_capsule.inspection import gather_statistics

    model = build_small("trial_transformer_tiny", {"subtraction": "one_iteration"})
    gains = model.encoder.layers[1].self_attn.subtraction.heads_gain.weight
    torch.nn.init.constant_(gains, -0.5)
    tokens = torch.tensor([[5, 6, 2]])
    statistics = gather_statistics(model, tokens, tokens.roll(1, 1))["subtraction"]
    heads = gains.numel()
    assert len(statistics) == heads * (2 + 2 + 2)  # over positions in 2+2 layers, over heads in the encoder's
    assert statistics[f"heads_gain_2_{heads}"].total / statistics[f"heads_gain_2_{heads}"].number == -0.5


def test_gains_are_drawn_from_a_log(tmp_path):
    line = (
        "[2026-11-25 21:02:24,155][valid][INFO] - epoch 00{} | valid on 'valid' subset | loss 4 | {} | num_updates {}\n"
    )
    gains = "routing_subtraction_positions_gain_1_1 {} | routing_subtraction_positions_gain_2_1 0.5"
    log = tmp_path / "train.log"
    log.write_text("".join(line.format(n, gains.format(-n), n) for n in (1, 2)), encoding="utf-8")
    program = REPOSITORY / "examples/subtractive_attention/gains.py"
    drawn = subprocess.run([sys.executable, program, log, tmp_path / "gains.png"], capture_output=True, text=True)
    assert drawn.stdout == "positions gain: 1 of 2 below 0, mean -0.75\n", drawn.stderr
    assert (tmp_path / "gains.png").stat().st_size > 1000
    log.write_text("", encoding="utf-8")
    refused = subprocess.run([sys.executable, program, log, tmp_path / "none.png"], capture_output=True, text=True)
    assert refused.returncode == 1 and "no gains; train with" in refused.stderr
