"""The bpf system call, as far as programs on raw tracepoints need it."""

from __future__ import annotations

import ctypes
import os
import struct

NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
"""Of the system call, by machine."""
PROG_LOAD, RAW_TRACEPOINT_OPEN = 5, 17
RAW_TRACEPOINT = 17
"""The kind of program."""
LOG = 1 << 16


def load(code: bytes) -> int:
    """Load the program and return its file descriptor; the error contains the verifier's message."""
    text, license, log = (ctypes.create_string_buffer(part) for part in (code, b"GPL", b"\0" * LOG))
    where = [ctypes.addressof(buffer) for buffer in (text, license, log)]
    about = struct.pack("<IIQQIIQ", RAW_TRACEPOINT, len(code) // 8, where[0], where[1], 1, LOG, where[2])
    try:
        return _bpf(PROG_LOAD, about.ljust(72, b"\0"))
    except OSError as e:
        said = log.value.decode(errors="replace").strip().splitlines()
        raise OSError(e.errno, f"{e.strerror}{': ' + said[-2 if len(said) > 1 else -1] if said else ''}") from None


def attach(program: int, tracepoint: str) -> int:
    """Runs the program at a tracepoint until the descriptor is closed."""
    name = ctypes.create_string_buffer(tracepoint.encode())
    return _bpf(RAW_TRACEPOINT_OPEN, struct.pack("<QI", ctypes.addressof(name), program).ljust(16, b"\0"))


def _bpf(command: int, about: bytes) -> int:
    number = NUMBERS.get(os.uname().machine)
    if number is None:
        raise OSError(0, f"no number of the bpf system call is known for {os.uname().machine}")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(about, len(about))
    got = int(libc.syscall(number, command, buffer, len(about)))
    if got < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return got
