"""Takes the kernel out of a bzImage, for its type information.

Format: Documentation/arch/x86/boot.rst (`payload_offset`, `payload_length`).
"""

from __future__ import annotations

import lzma
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable

SETUP_SECTS, PAYLOAD = 0x1F1, 0x248
SECTOR = 512
LZ4_CHUNK_MAX = 8 << 20
"""The kernel is compressed in chunks of that many bytes (the legacy frame of lz4)."""


def vmlinux(image: bytes) -> bytes | None:
    """The ELF file in a bzImage; `None` for any other file.

    It may be compressed with lz4, xz, gzip and, if the program `zstd` is installed, zstd.
    """
    try:
        at = ((image[SETUP_SECTS] or 4) + 1) * SECTOR
        offset, length = struct.unpack_from("<II", image, PAYLOAD)
        packed = image[at + offset : at + offset + length]
        unpack = next((unpack for magic, unpack in FORMATS.items() if packed.startswith(magic)), None)
        whole = unpack(packed) if unpack else b""
    except (struct.error, IndexError, ValueError, lzma.LZMAError, zlib.error):
        return None
    return whole if whole.startswith(b"\x7fELF") else None


def section(elf: bytes, name: bytes) -> bytes | None:
    """The contents of a section of a 64-bit little-endian ELF file."""
    try:
        (headers,) = struct.unpack_from("<Q", elf, 0x28)
        size, count, names_at = struct.unpack_from("<HHH", elf, 0x3A)
        found = [struct.unpack_from("<IIQQQQIIQQ", elf, headers + nth * size) for nth in range(count)]
        names = found[names_at][4]
    except (struct.error, IndexError, OverflowError):
        return None
    wanted = (header for header in found if elf[names + header[0] :].startswith(name + b"\0"))
    return next((elf[header[4] : header[4] + header[5]] for header in wanted), None)


def _zstd(packed: bytes) -> bytes:
    """By the program: the standard library has no zstd. The kernel's size follows the frame."""
    program = shutil.which("zstd")
    if program is None:
        raise ValueError("zstd is not installed")
    return subprocess.run([program, "-dc"], input=packed[:-4], capture_output=True, check=False).stdout


def _xz(packed: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(packed)


def _gzip(packed: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(packed)


def _lz4(packed: bytes) -> bytes:
    """The kernel's size follows the last chunk."""
    whole = bytearray()
    at, end = 4, len(packed) - 4
    while at < end:
        (length,) = struct.unpack_from("<I", packed, at)
        if length > LZ4_CHUNK_MAX + LZ4_CHUNK_MAX // 255 + 16:
            raise ValueError("not a chunk")
        whole += _lz4_block(packed[at + 4 : at + 4 + length])
        at += 4 + length
    return bytes(whole)


def _lz4_block(block: bytes) -> bytearray:
    out, at, end = bytearray(), 0, len(block)
    while at < end:
        token = block[at]
        at += 1
        literals, match = token >> 4, (token & 15) + 4
        if literals == 15:
            literals, at = _longer(block, at, literals)
        out += block[at : at + literals]
        at += literals
        if at >= end:
            break
        back = block[at] | block[at + 1] << 8
        at += 2
        if match == 19:
            match, at = _longer(block, at, match)
        start = len(out) - back
        if not 0 <= start < len(out):
            raise ValueError("a match outside the block")
        if back >= match:
            out += out[start : start + match]
        else:
            out += (bytes(out[start:]) * (match // back + 1))[:match]
    return out


def _longer(block: bytes, at: int, length: int) -> tuple[int, int]:
    while (more := block[at]) == 255:
        length, at = length + more, at + 1
    return length + more, at + 1


FORMATS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x02\x21\x4c\x18": _lz4,
    b"\xfd7zXZ\0": _xz,
    b"\x1f\x8b\x08": _gzip,
    b"\x28\xb5\x2f\xfd": _zstd,
}
