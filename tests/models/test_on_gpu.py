"""A training step of every architecture on a GPU, in each precision, and in two processes. Skipped without a GPU."""

import pytest
import torch
from fairseq.distributed import ModuleProxyWrapper
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel

from fairseq_capsule.testing import build_small, make_batch, make_criterion, make_sentences, make_task
from fairseq_capsule.testing.small_models import LENGTHS
from tests.zoo import ARCHITECTURES

DEVICE = "cuda"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]


def moved(batch, device):
    if torch.is_tensor(batch):
        return batch.to(device)
    return {name: moved(part, device) for name, part in batch.items()} if isinstance(batch, dict) else batch


def step(arch, dtype=torch.float32, device=DEVICE, **options):
    """Return the loss of a batch divided by its tokens, and the model with its gradients."""
    task = make_task()
    model = build_small(arch, {"dropout": 0.0, **options}, task).to(device, dtype).train()
    loss, tokens, _ = make_criterion(model, task)(model, moved(make_batch(make_sentences(LENGTHS)), device))
    (loss / tokens).backward()
    return loss.item() / tokens, model


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_step_gives_the_loss_of_a_cpu_and_finite_gradients(arch, dtype):
    loss, model = step(arch, dtype)
    assert loss == pytest.approx(step(arch, device="cpu")[0], rel=1e-3 if dtype == torch.float32 else 0.05)
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name


@pytest.mark.parametrize("arch", ["capsule_transformer_tiny", "gdr_transformer_tiny"])
def test_compiled_routing_has_the_same_loss_and_gradients(arch):
    expected, plain = step(arch)
    loss, model = step(arch, compile_routing=True)
    assert loss == pytest.approx(expected, rel=1e-4)
    for (name, parameter), other in zip(model.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(
            parameter.grad, other.grad, rtol=1e-3, atol=1e-4, msg=lambda text, n=name: f"{n}: {text}"
        )


def _train_in_a_group(rank, folder):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    task = make_task()
    model = build_small("gdr_transformer_tiny", {"dropout": 0.0}, task).to(DEVICE).train()
    wrapped = ModuleProxyWrapper(DistributedDataParallel(model))  # as fairseq wraps it
    batch = moved(make_batch(make_sentences(LENGTHS)[2 * rank : 2 * rank + 2]), DEVICE)
    make_criterion(model, task)(wrapped, batch)[0].backward()
    total = sum(parameter.grad.double().sum().item() for parameter in model.parameters())
    (folder / str(rank)).write_text(str(total))
    distributed.destroy_process_group()


def test_two_processes_have_the_same_gradients(tmp_path):
    multiprocessing.spawn(_train_in_a_group, (tmp_path,), nprocs=2)
    first, second = (float((tmp_path / str(rank)).read_text()) for rank in range(2))
    assert first == pytest.approx(second, rel=1e-6)
