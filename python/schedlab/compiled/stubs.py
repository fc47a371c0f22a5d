"""The symbols that neither the compiled files nor the shim define: each gets a stub, and calls of it are counted."""

from __future__ import annotations

from collections.abc import Iterable

LIBC = frozenset(
    ["bsearch", "memcmp", "memcpy", "memmove", "memset", "strcmp", "strcpy", "strcspn", "strlen", "strncmp"]
)
"""Functions of the kernel that libc provides with the same meaning."""

HOST = {name: f"host_{name}" for name in ("snprintf", "sprintf", "sscanf")}
"""Functions that host.c provides, and their names there."""

EXPORTED = ("sl_main", "sl_now", "sl_stub_names", "sl_stub_calls", "sl_nr_stubs")
"""What host.c refers to; every other symbol of the kernel is hidden from libc."""

SILENT = "sl_trace_"
"""Tracepoints that nothing observes: their stubs are not counted."""

LINKED = frozenset(
    [f"__sched_class_{end}" for end in ("highest", "lowest")]
    + [f"__{end}_sched_classes" for end in ("begin", "end")]
    + [f"__sl_{name}_{end}" for name in ("percpu", "initcall") for end in ("start", "end")]
)
"""Symbols of the linker script."""

DATA_SIZE = 32768
"""Bytes of each unknown object: more than any has that the scheduler refers to."""


def undefined(symbols: str) -> set[str]:
    """The undefined symbols in the output of `nm --undefined-only`."""
    return {line.split()[-1] for line in symbols.splitlines() if line.strip()}


def called(relocations: str) -> set[str]:
    """The symbols that are called or jumped to, from the output of `readelf --relocs --wide`."""
    found = set[str]()
    for line in relocations.splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[2] == "R_X86_64_PLT32":
            found.add(fields[4].split("+")[0].split("@")[0])
    return found


def assembly(missing: Iterable[str], functions: set[str]) -> str:
    """The stubs in assembly: functions return 0 and count their calls, objects are filled with zeros."""
    names = sorted(
        name
        for name in missing
        if name not in LIBC and name not in HOST and name not in LINKED and not name.startswith("host_")
    )
    counted = [name for name in names if name in functions and not name.startswith(SILENT)]
    lines = ["\t.text"]
    for name in names:
        if name in functions or name.startswith(SILENT):
            lines += [f"\t.globl {name}", f"{name}:"]
            if not name.startswith(SILENT):
                lines.append(f"\tincq sl_stub_calls+{8 * counted.index(name)}(%rip)")
            lines += ["\txorl %eax, %eax", "\tret"]
    lines.append("\t.bss")
    for name in names:
        if name not in functions and not name.startswith(SILENT):
            lines += ["\t.balign 64", f"\t.globl {name}", f"{name}:", f"\t.zero {DATA_SIZE}"]
    lines += ["\t.globl sl_stub_calls", "\t.balign 8", "sl_stub_calls:", f"\t.zero {8 * max(len(counted), 1)}"]
    lines += ["\t.section .rodata", "\t.balign 8", "\t.globl sl_stub_names", "sl_stub_names:"]
    lines += [f"\t.quad .Lname{i}" for i in range(len(counted))]
    lines += ["\t.globl sl_nr_stubs", "sl_nr_stubs:", f"\t.quad {len(counted)}"]
    for i, name in enumerate(counted):
        lines += [f".Lname{i}:", f'\t.asciz "{name}"']
    lines.append('\t.section .note.GNU-stack,"",@progbits')
    return "\n".join(lines) + "\n"
