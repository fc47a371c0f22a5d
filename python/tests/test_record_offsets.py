"""Probes for kernels whose dynamic probes know no types: the image is unpacked, and its types give offsets."""

from __future__ import annotations

import gzip
import lzma
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.record import offsets
from schedlab.record.bpf.btf import Place, Types
from schedlab.record.image import section, vmlinux
from test_record_bpf import btf


def elf(contents: bytes) -> bytes:
    """A file with two sections: `.BTF` and the names of sections."""
    names = b"\0.BTF\0.shstrtab\0"
    start = 64
    headers = start + len(contents) + len(names)
    head = b"\x7fELF".ljust(0x28, b"\0") + struct.pack("<Q", headers)
    head = head.ljust(0x3A, b"\0") + struct.pack("<HHH", 64, 2, 1)
    sections = [(1, start, len(contents)), (6, start + len(contents), len(names))]
    table = b"".join(struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 1, 0) for name, at, size in sections)
    return head.ljust(start, b"\0") + contents + names + table


def bz_image(packed: bytes) -> bytes:
    setup = bytearray(5 * 512)
    setup[0x1F1] = 4
    struct.pack_into("<II", setup, 0x248, 64, len(packed))
    return bytes(setup) + b"\0" * 64 + packed


def long_length(length: int) -> bytes:
    """What follows a length of 15 in a token."""
    return b"\xff" * ((length - 15) // 255) + bytes([(length - 15) % 255]) if length >= 15 else b""


def lz4_block(parts: list[tuple[bytes, int, int]]) -> tuple[bytes, bytes]:
    """Literals, each followed by a match (how far back, how long); with what they stand for, byte by byte."""
    packed, plain = bytearray(), bytearray()
    for literals, back, match in parts:
        back = back % (len(plain) + len(literals)) + 1
        packed.append(min(len(literals), 15) << 4 | min(match - 4, 15))
        packed += long_length(len(literals)) + literals + struct.pack("<H", back) + long_length(match - 4)
        plain += literals
        for _ in range(match):
            plain.append(plain[-back])
    packed.append(min(len(packed[:3]), 15) << 4)
    packed += packed[:3]
    plain += packed[-3:]
    return bytes(packed), bytes(plain)


def lz4(blocks: list[bytes], size: int) -> bytes:
    chunks = b"".join(struct.pack("<I", len(block)) + block for block in blocks)
    return b"\x02\x21\x4c\x18" + chunks + struct.pack("<I", size)


def test_zstd_is_unpacked_where_the_program_is_installed() -> None:
    plain = b"\x7fELF" + b"x" * 60
    frame = b"\x28\xb5\x2f\xfd" + bytes([0x20, len(plain)]) + (len(plain) << 3 | 1).to_bytes(3, "little") + plain
    image = bz_image(frame + struct.pack("<I", len(plain)))
    assert vmlinux(image) == (plain if shutil.which("zstd") else None)


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=600), st.integers(0, 60_000), st.integers(4, 700)), max_size=6)
)
def test_lz4_is_unpacked(parts: list[tuple[bytes, int, int]]) -> None:
    head = b"\x7fELF" + b"x" * 16
    packed, plain = lz4_block([(head, 0, 4), *parts])
    image = bz_image(lz4([packed, packed], 2 * len(plain)))
    assert vmlinux(image) == plain * 2


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_other_packings(pack: Callable[[bytes], bytes]) -> None:
    contents = elf(btf())
    assert vmlinux(bz_image(pack(contents))) == contents


@given(st.binary(max_size=900))
def test_any_other_file_has_no_kernel(data: bytes) -> None:
    assert vmlinux(data) is None
    assert vmlinux(bz_image(b"\x02\x21\x4c\x18" + data)) is None
    assert section(b"\x7fELF" + data, b".BTF") in (None, b"")


@given(st.integers(0, 2**64 - 1), st.integers(0, 65_535), st.integers(0, 65_535), st.integers(0, 65_535))
def test_a_damaged_header_of_a_kernel_has_no_sections(headers: int, size: int, count: int, names: int) -> None:
    damaged = bytearray(elf(b"types"))
    struct.pack_into("<Q", damaged, 0x28, headers)
    struct.pack_into("<HHH", damaged, 0x3A, size, count, names)
    found = section(bytes(damaged), b".BTF")
    assert found is None or len(found) <= len(damaged)


def test_fields_become_offsets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    image = tmp_path / "vmlinuz"
    image.write_bytes(bz_image(gzip.compress(elf(btf()))))
    either = "b=[$arg1 outer q->b|p->b:s32]"
    lines = (f"p:e/ck f {either} ?q=[$arg1 outer q|z:u64] x=$arg2:s32", "p:e/at g q=[$arg1 outer q|z:u64]")
    monkeypatch.setattr(offsets, "CLOCKS", lines)
    assert (
        offsets.probes(image, groups=False, cpus=1, threads=1, levels=1)
        == "p:e/ck f b=+8(+16($arg1)):s32 x=$arg2:s32\t\n"
    )
    image.write_bytes(bz_image(gzip.compress(elf(b""))))
    assert offsets.probes(image, groups=True, cpus=4, threads=2, levels=2) == ""


class Anything(Types):
    """A kernel in which every member exists, each at offset 8."""

    def __init__(self) -> None:
        pass

    def place(self, struct_name: str, path: str) -> Place:
        return Place((8,) * (path.count("->") + 1), 8, signed=False)

    def percpu(self, variable: str) -> int:
        return 1000

    def parameters(self, function: str) -> int:
        return 4 if function == "select_task_rq_fair" else 0


def test_members_of_domains_are_fetched_by_offsets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Up to 6.7 a probe with types does not find what is behind an anonymous union."""
    image = tmp_path / "vmlinuz"
    image.write_bytes(bz_image(gzip.compress(elf(btf()))))
    assert offsets.domain_members(image) == ""
    image.write_bytes(b"")
    assert offsets.domain_members(image) == ""
    monkeypatch.setattr(offsets, "type_information", lambda image: Anything())
    expected = "nr_idle_scan='+8(+8(@)):s32'\nhas_idle_cores='+8(+8(@)):s32'\nspan_weight='+8(@):u32'\n"
    assert offsets.domain_members(image) == expected


def test_every_probe_has_offsets_where_all_members_exist() -> None:
    """No field of a probe is lost by its spelling: with one place for every member, each line comes out whole."""
    types = Anything()
    several = [*offsets._several_cpus(2, 1, 1, types), *offsets._several_cpus(2, 2, 4, types)]
    assert sum(" o3=" in line for line in several) == 1
    assert offsets._with_offsets(several[2], types) == (
        r"p:e/qa select_task_rq_fair fl=$arg3:x32 cpu=\1:s32 la=+1008(@__per_cpu_offset+8):u64 "
        "ra=+1008(@__per_cpu_offset+8):u64 ua=+1008(@__per_cpu_offset+8):u64 ue=+1008(@__per_cpu_offset+8):u32 "
        "pe=+1008(@__per_cpu_offset+8):u32 lt=+1008(@__per_cpu_offset+8):u64 cc=+1008(@__per_cpu_offset+8):u64"
    )
    assert sum(" sy=$arg4:x32 " in line for line in several) == 2
    for line in (*offsets.CLOCKS, *offsets.GROUPS, *several):
        text = offsets._with_offsets(line, types)
        assert text is not None
        assert not set("[?") & set(text)
        assert [word.partition("=")[0] for word in text.split()] == [
            word.removeprefix("?").partition("=")[0] for word in line.split() if "=" in word or word in line.split()[:2]
        ]
