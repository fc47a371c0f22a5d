"""The kernel's type information (BTF): offsets of members for paths such as `se.cfs_rq->rq->clock_task`.

Format: Documentation/bpf/btf.rst.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VMLINUX = Path("/sys/kernel/btf/vmlinux")
MAGIC = 0xEB9F
INT, PTR, ARRAY, STRUCT, UNION, ENUM, TYPEDEF, FUNC, VAR, DATASEC, ENUM64 = 1, 2, 3, 4, 5, 6, 8, 12, 14, 15, 19
QUALIFIERS = (TYPEDEF, 9, 10, 11, 18)
"""Types that refer to another type: typedef, volatile, const, restrict, type tag."""

# The number of bytes that follow the twelve bytes of a type, fixed and per member.
FIXED = {INT: 4, ARRAY: 12, VAR: 4, 17: 4}
EACH = {STRUCT: 12, UNION: 12, ENUM: 8, 13: 8, DATASEC: 12, ENUM64: 12}
PERCPU = ".data..percpu"
SIGNED = 1 << 24


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a value relative to a pointer: each offset except the last is that of a pointer to follow."""

    offsets: tuple[int, ...]
    size: int
    signed: bool


@dataclass(frozen=True, slots=True)
class _Type:
    kind: int
    parts: int
    bitfields: bool
    size_or_type: int
    at: int
    """Of what follows."""


class Types:
    """The type information of the kernel."""

    def __init__(self, data: bytes) -> None:
        magic, _version, _flags, header, types, types_length, strings, _length = struct.unpack_from("<HBBIIIII", data)
        if magic != MAGIC:
            raise ValueError("not the type information of a little-endian kernel")
        self._data, self._strings = data, header + strings
        self._types: list[_Type] = [_Type(0, 0, False, 0, 0)]
        self._structs: dict[str, int] = {}
        self._functions: dict[str, int] = {}
        self._percpu: tuple[int, int] | None = None
        at, end = header + types, header + types + types_length
        while at < end:
            name, info, size = struct.unpack_from("<III", data, at)
            kind, parts = info >> 24 & 0x1F, info & 0xFFFF
            if kind == STRUCT and name:
                self._structs.setdefault(self._name(name), len(self._types))
            if kind == FUNC:
                self._functions.setdefault(self._name(name), size)
            if kind == DATASEC and self._name(name) == PERCPU:
                self._percpu = at + 12, parts
            self._types.append(_Type(kind, parts, bool(info >> 31), size, at + 12))
            at += 12 + FIXED.get(kind, 0) + parts * EACH.get(kind, 0)

    def place(self, struct_name: str, path: str) -> Place | None:
        """The location of `path` relative to a pointer to a struct; `None` if this kernel does not have it."""
        offsets: list[int] = []
        of = self._structs.get(struct_name)
        for nth, step in enumerate(path.split("->")):
            of, offset = self._pointed(of) if nth else of, 0
            for name in step.split("."):
                found = self._member(of, name) if of else None
                if found is None:
                    return None
                offset, of = offset + found[0], found[1]
            offsets.append(offset)
        return self._scalar(tuple(offsets), of)

    def parameters(self, function: str) -> int | None:
        """How many parameters a function of this kernel has."""
        prototype = self._functions.get(function)
        return None if prototype is None else self._types[prototype].parts

    def percpu(self, variable: str) -> int | None:
        """The offset of a variable in the area of each CPU; `None` if this kernel has none of that name."""
        at, count = self._percpu or (0, 0)
        for nth in range(count):
            of, offset, _size = struct.unpack_from("<III", self._data, at + 12 * nth)
            (name,) = struct.unpack_from("<I", self._data, self._types[of].at - 12)
            if self._name(name) == variable:
                return int(offset)
        return None

    def _member(self, of: int, name: str) -> tuple[int, int] | None:
        """The offset and type of a member, including members of anonymous structs."""
        kind = self._plain(of)
        if kind.kind not in (STRUCT, UNION):
            return None
        for label, member, offset in self._members(kind):
            if label == name:
                return offset, member
            inner = self._member(member, name) if not label else None
            if inner:
                return offset + inner[0], inner[1]
        return None

    def _members(self, of: _Type) -> Iterator[tuple[str, int, int]]:
        for nth in range(of.parts):
            name, member, bits = struct.unpack_from("<III", self._data, of.at + 12 * nth)
            yield self._name(name), member, (bits & 0xFFFFFF if of.bitfields else bits) // 8

    def _pointed(self, of: int | None) -> int | None:
        kind = self._plain(of) if of else None
        return kind.size_or_type if kind and kind.kind == PTR else None

    def _scalar(self, offsets: tuple[int, ...], of: int | None) -> Place | None:
        kind = self._plain(of) if of else None
        if kind is not None and kind.kind == ARRAY:
            # Its first element.
            kind = self._plain(struct.unpack_from("<I", self._data, kind.at)[0])
        if kind is None or kind.kind not in (INT, PTR, ENUM, ENUM64):
            return None
        signed = kind.kind == INT and bool(struct.unpack_from("<I", self._data, kind.at)[0] & SIGNED)
        return Place(offsets, 8 if kind.kind == PTR else kind.size_or_type, signed)

    def _plain(self, of: int) -> _Type:
        kind = self._types[of]
        while kind.kind in QUALIFIERS:
            kind = self._types[kind.size_or_type]
        return kind

    def _name(self, at: int) -> str:
        start = self._strings + at
        return self._data[start : self._data.index(b"\0", start)].decode()
