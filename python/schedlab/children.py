"""Child processes that never outlive the thread that started them, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
# Looked up here: between fork and exec a lock of the dynamic linker may be held by a thread that no longer exists.
_PRCTL = ctypes.CDLL(None).prctl


def die_with_parent() -> Callable[[], None]:
    """What the child must call before it becomes another program: the kernel kills it when its parent's thread ends."""
    parent = os.getpid()

    def ask() -> None:
        _PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before it was asked
            os._exit(1)

    return ask
