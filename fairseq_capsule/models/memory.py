"""Reuse of the memory of large tensors on a CPU.

By default glibc maps new memory for every large tensor and unmaps it when the tensor is freed. The kernel then zeroes
and faults in each page again at every operation. This module makes glibc keep the memory and reuse it.
"""

import ctypes
import functools
import os
import platform

# Parameters of glibc's mallopt, from malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
NAMES = ("mmap_threshold", "mmap_max", "trim_threshold", "top_pad")  # settings in the environment
LARGEST_INT = 2**31 - 1
OLD_LIMIT = 2**25  # the highest mmap threshold that glibc before 2.35 accepts


@functools.cache  # a setting of the process
def keep_memory() -> bool:
    """Make glibc keep the memory of freed tensors and reuse it. The process then holds its peak memory until it ends.

    Nothing changes without glibc, or if the environment sets one of these parameters itself. For example,
    `MALLOC_TRIM_THRESHOLD_=131072`, glibc's default, keeps all defaults.

    Returns:
        Whether the settings were applied.
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
