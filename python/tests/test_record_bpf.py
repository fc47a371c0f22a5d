"""State probes on the running kernel: type information, programs, and their records put together again."""

from __future__ import annotations

import struct

import pytest

from schedlab.record.bpf.btf import MAGIC, Place, Types
from schedlab.record.bpf.probes import PROBES, Joined
from schedlab.record.bpf.program import NUMBERS, Value, assemble

INT, PTR, STRUCT, UNION, TYPEDEF = 1, 2, 4, 5, 8
HEADER = "<HBBIIIII"


def btf() -> bytes:
    """`struct inner { u64 a; s32 b; }; struct outer { u64 x; union { u64 u; s64 v; }; struct inner *p; }`."""
    names = ["", "u64", "s32", "s64", "inner", "a", "b", "outer", "x", "u", "v", "p", "alias"]
    strings, at = b"", {}
    for name in names:
        at[name] = len(strings)
        strings += name.encode() + b"\0"

    def kind(name: str, kind: int, parts: int, size: int) -> bytes:
        return struct.pack("<III", at[name], kind << 24 | parts, size)

    def member(name: str, of: int, offset: int) -> bytes:
        return struct.pack("<III", at[name], of, offset * 8)

    types = [
        kind("u64", INT, 0, 8) + struct.pack("<I", 64),
        kind("s32", INT, 0, 4) + struct.pack("<I", 1 << 24 | 32),
        kind("s64", INT, 0, 8) + struct.pack("<I", 1 << 24 | 64),
        kind("inner", STRUCT, 2, 16) + member("a", 1, 0) + member("b", 2, 8),
        kind("alias", TYPEDEF, 0, 4),
        kind("", PTR, 0, 5),
        kind("", UNION, 2, 8) + member("u", 1, 0) + member("v", 3, 0),
        kind("outer", STRUCT, 3, 24) + member("x", 1, 0) + member("", 7, 8) + member("p", 6, 16),
    ]
    body = b"".join(types)
    length = struct.calcsize(HEADER)
    return struct.pack(HEADER, MAGIC, 1, 0, length, 0, len(body), len(body), len(strings)) + body + strings


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("x", Place((0,), 8, signed=False)),
        ("v", Place((8,), 8, signed=True)),
        ("p", Place((16,), 8, signed=False)),
        ("p->b", Place((16, 8), 4, signed=True)),
        ("q", None),
        ("x->a", None),
        ("p->c", None),
    ],
)
def test_where_members_lie(path: str, place: Place | None) -> None:
    assert Types(btf()).place("outer", path) == place


def test_type_information_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="little-endian"):
        Types(b"\0" * 64)


def test_a_program_prints_as_many_records_as_it_says() -> None:
    value = Value("v", 0, Place((8, 16), 4, signed=True))
    for count, records in ((1, 1), (NUMBERS, 1), (NUMBERS + 1, 2), (3 * NUMBERS, 3)):
        code, printed = assemble("x", [value] * count)
        calls = [struct.unpack("<BBhi", code[at : at + 8]) for at in range(0, len(code), 8)]
        assert printed == records == sum(call[0] == 0x85 and call[3] == 177 for call in calls)
        assert calls[-1][0] == 0x95


def test_a_guard_jumps_to_the_end() -> None:
    value = Value("v", 0, Place((8,), 8, signed=False))
    code, _ = assemble("x", [value], value)
    all_of_it = [struct.unpack("<BBhi", code[at : at + 8]) for at in range(0, len(code), 8)]
    at, jump = next((at, one) for at, one in enumerate(all_of_it) if one[0] == 0x05)
    assert at + 1 + jump[2] == len(all_of_it) - 2
    assert all_of_it[-2][0] == 0xB7


def test_records_that_were_split_are_put_together() -> None:
    head = b"              sh-12      [00%d] d..4.     1.00000%d: "
    text = [
        head % (0, 1) + b"sched_switch: prev_comm=a\n",
        head % (0, 2) + b"bpf_trace_printk: sw: pp=1\n",
        head % (1, 3) + b"bpf_trace_printk: rt: p=2 v=3\n",
        head % (0, 4) + b"bpf_trace_printk: sw+: np=4\n",
        head % (0, 5) + b"bpf_trace_printk: sw+: z=5\n",
        head % (1, 6) + b"bpf_trace_printk: sw: pp=6\n",
    ]
    lines = list(Joined({"sw": 3, "rt": 1}).lines(text))
    assert [line.split(b": ", 1)[1] for line in lines] == [
        b"sched_switch: prev_comm=a\n",
        b"sw: () pp=1 np=4 z=5\n",
        b"rt: () p=2 v=3\n",
    ]


def test_every_probe_begins_with_what_the_reader_needs() -> None:
    for probe in PROBES:
        labels = [prefix + label for _, _, prefix, paths in probe.reads for label in paths]
        assert len(labels) == len(set(labels)), probe.name
        assert probe.unless_zero is None or probe.unless_zero in labels
