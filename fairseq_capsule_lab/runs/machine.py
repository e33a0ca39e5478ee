"""This machine: its GPUs and memory, its place among several nodes, and facts about it for a manifest."""

import os
import platform
import re
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capsule_routing.errors import UserError
from fairseq_capsule_lab.processes import FORKS, PLAIN, cores, versions

PACKAGES = ("fairseq-capsule", *FORKS, "torch", "numpy", "hydra-core")
# Without these, glibc returns the memory of a large tensor and requests it again each time, in small pages.
_LARGE = "4000000000"
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": _LARGE, "MALLOC_TRIM_THRESHOLD_": _LARGE, "MALLOC_TOP_PAD_": "100000000"}
_DEVICE = re.compile(r"[0-9]+|(GPU|MIG)-\S+")
_PAGES = "glibc.malloc.hugetlb=1"


@dataclass(frozen=True)
class Machines:
    """The devices and processes of a training."""

    gpus: tuple[str, ...]  # as in CUDA_VISIBLE_DEVICES; empty for the CPU
    processes: int  # per node
    nodes: int
    node: int  # the number of this node, from 0
    launcher: tuple[str, ...]  # the first words of the command, which start one process for each device

    @property
    def world(self) -> int:
        return self.nodes * self.processes


def visible_gpus(environment: Mapping[str, str]) -> list[str]:
    """Return the names of the GPUs for CUDA_VISIBLE_DEVICES."""
    if "CUDA_VISIBLE_DEVICES" in environment:
        names = [name.strip() for name in environment["CUDA_VISIBLE_DEVICES"].split(",") if name.strip()]
        hiding = next((index for index, name in enumerate(names) if not _DEVICE.fullmatch(name)), len(names))
        return names[:hiding]  # what is no device hides what follows: -1, or NoDevFiles of Slurm
    listed = (re.match(r"GPU ([0-9]+):", line) for line in output("nvidia-smi", "--list-gpus"))
    return [line[1] for line in listed if line]


def child_environment(gpus: str) -> dict[str, str]:
    """Return the environment of fairseq's commands on some GPUs, or on the CPU if there are none."""
    own = {**PLAIN, "CUDA_VISIBLE_DEVICES": gpus}
    if not gpus:
        tunables = os.environ.get("GLIBC_TUNABLES")
        own |= {**_MEMORY, "GLIBC_TUNABLES": f"{_PAGES}:{tunables}" if tunables else _PAGES}
    return {**os.environ, **own}


def choose_machines(
    gpus: int | None, processes: int | None, nodes: int, environment: Mapping[str, str], dry_run: bool = False
) -> Machines:
    """Return the requested GPUs or processes, and the launcher that starts one process for each.

    It is a UserError if they are not available, if srun started several tasks on a node, or if the number of this node
    is unknown. With `dry_run` GPUs need not be available.
    """
    _refuse_several_tasks(environment)
    if processes and gpus:
        raise UserError("--gpus and --processes: each GPU has one process; give only one of the options")
    visible = visible_gpus(environment)
    if dry_run and gpus:
        free = [str(number) for number in range(2 * gpus) if str(number) not in visible]
        visible += free[: max(0, gpus - len(visible))]
    count = 0 if processes else len(visible) if gpus is None else gpus
    if count > len(visible):
        remedy = "give a smaller number, or --gpus 0 to train on the CPU"
        raise UserError(f"--gpus {count}: only {len(visible)} visible here; {remedy}")
    processes = count or processes or 1
    node, launcher = _node(nodes, environment) if nodes > 1 else (0, ["--standalone"] if processes > 1 else [])
    if launcher:  # without torchrun, fairseq starts one process per GPU, and none on a CPU
        launcher = ["torchrun", *launcher, "--nproc-per-node", str(processes), "--no-python"]
    return Machines(tuple(visible[:count]), processes, nodes, node, tuple(launcher))


def _refuse_several_tasks(environment: Mapping[str, str]) -> None:
    """Refuse a step of Slurm with several tasks on a node: each would start a launcher of its own."""
    tasks, nodes = (environment.get(f"SLURM_STEP_NUM_{what}", "1") for what in ("TASKS", "NODES"))
    if tasks.isdecimal() and nodes.isdecimal() and int(tasks) > int(nodes):
        remedy = "give srun --ntasks-per-node 1: the task of a node starts a process for each of its GPUs"
        remedy += "; if each task has a folder of its own, set SLURM_STEP_NUM_TASKS=1 before train.sh"
        raise UserError(f"srun started {tasks} tasks on {nodes} nodes; {remedy}")


def _node(nodes: int, environment: Mapping[str, str]) -> tuple[int, list[str]]:
    """Return the number of this node, and the torchrun options to reach the first node."""
    number = environment.get("SLURM_NODEID") or environment.get("NODE_RANK") or ""
    if not number.isdecimal() or int(number) >= nodes:
        remedy = f"start with srun, or set NODE_RANK, 0 to {nodes - 1}, and MASTER_ADDR"
        raise UserError(f"--nodes {nodes}: the number of this node is unknown; {remedy}")
    address = environment.get("MASTER_ADDR")
    if not address:
        step = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST") or ""
        names = " ".join(output("scontrol", "show", "hostnames", step)).split() if step else []
        if not names:
            raise UserError(f"--nodes {nodes}: MASTER_ADDR is not set; set it to the name of the first node")
        address = names[0]
    # Jobs that share a node must not share a port.
    port = environment.get("MASTER_PORT") or str(29500 + int(environment.get("SLURM_JOB_ID") or 0) % 1000)
    ends = ["--master-addr", address, "--master-port", port]
    return int(number), ["--nnodes", str(nodes), "--node-rank", str(int(number)), *ends]


def device_settings(machines: Machines, precision: str) -> list[str]:
    """Return the settings of Hydra for the devices and processes."""
    options = [f"common.{name}={str(precision == name).lower()}" for name in ("fp16", "bf16")]
    if not machines.gpus:
        options += ["common.cpu=true", "distributed_training.distributed_backend=gloo"]
        options += ["distributed_training.ddp_backend=legacy_ddp"]
    options += [f"distributed_training.distributed_world_size={machines.world}"]
    if machines.launcher:
        options += ["distributed_training.distributed_init_method=env://"]
        options += ["distributed_training.distributed_no_spawn=true"]
        options += ["distributed_training.distributed_rank=${oc.env:RANK}"]
        options += ["distributed_training.device_id=${oc.env:LOCAL_RANK}"]
    return options


def facts(checkout: Path) -> dict[str, Any]:
    """Return what a manifest states of this machine, its packages and the commit of a checkout."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(errors="replace").splitlines() if file.exists() else []
    names = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    described = output("git", "-C", str(checkout), *"describe --always --abbrev=40 --dirty --exclude *".split())
    return {
        "versions": {"python": platform.python_version(), **versions(PACKAGES)},
        "git": described[0] if described else "unknown",
        "host": socket.gethostname(),
        "processor": f"{cores()} × {next(names, platform.machine())}",
        "gpus": output("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"),
    }


def output(*command: str) -> list[str]:
    """Return the output lines of a command; an empty list if it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, errors="replace").stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return []
