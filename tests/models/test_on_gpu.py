"""A training step of every architecture on a GPU, in each precision, and in two processes. Skipped without a GPU."""

import pytest
import torch
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel

from fairseq_capsule.testing import build_small, make_batch, make_criterion, make_sentences, make_task
from fairseq_capsule.testing.small_models import LENGTHS
from tests.zoo import ARCHITECTURES

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")]


def moved(batch, device):
    if torch.is_tensor(batch):
        return batch.to(device)
    return {name: moved(part, device) for name, part in batch.items()} if isinstance(batch, dict) else batch


def step(arch, dtype=torch.float32, device="cuda"):
    """Return the loss of a batch divided by its tokens, and the model with its gradients."""
    task = make_task()
    model = build_small(arch, {"dropout": 0.0}, task).to(device, dtype).train()
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


def _train_in_a_group(rank, address, queue):
    distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    task = make_task()
    model = DistributedDataParallel(build_small("gdr_transformer_tiny", {"dropout": 0.0}, task).cuda().train())
    criterion = make_criterion(model.module, task)
    criterion(model, moved(make_batch(make_sentences(LENGTHS)[2 * rank : 2 * rank + 2]), "cuda"))[0].backward()
    queue.put(sum(parameter.grad.double().sum().item() for parameter in model.parameters()))
    distributed.destroy_process_group()


def test_two_processes_have_the_same_gradients(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    address = f"file://{tmp_path}/group"
    processes = [context.Process(target=_train_in_a_group, args=(rank, address, queue)) for rank in range(2)]
    for process in processes:
        process.start()
    sums = [queue.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    assert sums[0] == pytest.approx(sums[1], rel=1e-6)
