"""Assembles BPF programs that read members of the arguments of a tracepoint and print them.

A program follows pointers with `bpf_probe_read_kernel`, which leaves 0 where there is nothing to read, and prints with
`bpf_trace_vprintk`, which takes twelve numbers at most: what has more is printed in several records.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from schedlab.record.bpf.btf import Place

NUMBERS = 12
"""MAX_BPRINTF_VARARGS."""
PROBE_READ_KERNEL, TRACE_VPRINTK = 113, 177
R0, R1, R2, R3, R4, R6, R8, R10 = 0, 1, 2, 3, 4, 6, 8, 10
FORMAT, POINTER, FIRST = -408, -8, -104
"""Stack layout, from the end: the text, the pointer that is followed, the numbers."""


@dataclass(frozen=True, slots=True)
class Value:
    """A number to print."""

    label: str
    argument: int
    """Of the tracepoint."""
    place: Place | None
    """From the pointer that the argument is; `None`: the argument itself."""


def assemble(name: str, values: Sequence[Value], unless_zero: Value | None = None) -> tuple[bytes, int]:
    """A program that prints values as `name: label=number ...`, and into how many records.

    It prints nothing where `unless_zero` is 0.
    """
    chunks = [values[at : at + NUMBERS] for at in range(0, len(values), NUMBERS)]
    body = b"".join(_chunk(name if nth == 0 else f"{name}+", chunk) for nth, chunk in enumerate(chunks))
    end = _move(R0, 0) + _insn(0x95)
    guard = b""
    if unless_zero:
        read = _read(unless_zero, FIRST)
        guard = read + _load(R1, R10, FIRST) + _insn(0x55, R1, off=1, imm=0) + _insn(0x05, off=len(body) // 8)
    return _insn(0xBF, R6, R1) + guard + body + end, len(chunks)


def _chunk(name: str, values: Sequence[Value]) -> bytes:
    text = f"{name}: " + " ".join(f"{value.label}=%{'lld' if _signed(value) else 'llu'}" for value in values)
    raw = text.encode() + b"\0"
    padded = raw.ljust(-(-len(raw) // 8) * 8, b"\0")
    code = [_read(value, FIRST + 8 * nth) for nth, value in enumerate(values)]
    for at in range(0, len(padded), 8):
        code.append(_wide(R1, int.from_bytes(padded[at : at + 8], "little")) + _store(R10, FORMAT + at, R1))
    code += [
        _address(R1, FORMAT) + _move(R2, len(raw)),
        _address(R3, FIRST) + _move(R4, 8 * len(values)),
        _insn(0x85, imm=TRACE_VPRINTK),
    ]
    return b"".join(code)


def _signed(value: Value) -> bool:
    return value.place is not None and value.place.signed


def _read(value: Value, slot: int) -> bytes:
    """Store a value at a place on the stack, widened to eight bytes."""
    load = _load(R8, R6, 8 * value.argument)
    if value.place is None:
        return load + _store(R10, slot, R8)
    *pointers, last = value.place.offsets
    follow = b"".join(_fetch(POINTER, 8, offset) + _load(R8, R10, POINTER) for offset in pointers)
    zero = _move(R1, 0) + _store(R10, slot, R1)
    widen = b""
    if value.place.signed and value.place.size < 8:
        bits = 64 - 8 * value.place.size
        shifts = _insn(0x67, R1, imm=bits) + _insn(0xC7, R1, imm=bits)
        widen = _load(R1, R10, slot) + shifts + _store(R10, slot, R1)
    return load + follow + zero + _fetch(slot, value.place.size, last) + widen


def _fetch(slot: int, size: int, offset: int) -> bytes:
    source = _insn(0xBF, R3, R8) + _insn(0x07, R3, imm=offset)
    return _address(R1, slot) + _move(R2, size) + source + _insn(0x85, imm=PROBE_READ_KERNEL)


def _insn(code: int, to: int = 0, source: int = 0, off: int = 0, imm: int = 0) -> bytes:
    return struct.pack("<BBhi", code, to | source << 4, off, imm)


def _move(register: int, number: int) -> bytes:
    return _insn(0xB7, register, imm=number)


def _address(register: int, slot: int) -> bytes:
    return _insn(0xBF, register, R10) + _insn(0x07, register, imm=slot)


def _load(register: int, base: int, off: int) -> bytes:
    return _insn(0x79, register, base, off)


def _store(base: int, off: int, register: int) -> bytes:
    return _insn(0x7B, base, register, off)


def _wide(register: int, number: int) -> bytes:
    low, high = struct.unpack("<ii", struct.pack("<Q", number))
    return _insn(0x18, register, imm=low) + _insn(0, imm=high)
