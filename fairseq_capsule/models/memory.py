"""Memory of large tensors on a CPU.

By default glibc takes a new mapping from the kernel for every large tensor and gives it back with the tensor. Each page
of it is then zeroed and faulted in again, at every operation. Here glibc is told to keep that memory and to reuse it.
"""

import ctypes
import functools
import os
import platform

# Parameters of glibc's mallopt, from malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
NAMES = ("mmap_threshold", "mmap_max", "trim_threshold", "top_pad")  # in the environment
LARGEST_INT = 2**31 - 1
OLD_LIMIT = 2**25  # the highest threshold of mappings that glibc before 2.35 takes


@functools.cache  # a setting of the process, made once
def keep_memory() -> bool:
    """Let glibc keep the memory of freed tensors for the next ones; returns whether it was told to.

    The process then holds its peak until it ends. Nothing happens without glibc, nor where the environment has one of
    these settings (`MALLOC_TRIM_THRESHOLD_=131072`, glibc's default, is enough to leave all as it is).
    """
    if platform.libc_ver()[0] != "glibc" or _has_settings():
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not any(mallopt(M_MMAP_THRESHOLD, size) for size in (LARGEST_INT, OLD_LIMIT)):
        return False
    return bool(mallopt(M_TRIM_THRESHOLD, LARGEST_INT) and mallopt(M_TOP_PAD, 100_000_000))


def _has_settings() -> bool:
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return any(f"MALLOC_{name.upper()}_" in os.environ or f"glibc.malloc.{name}=" in tunables for name in NAMES)
