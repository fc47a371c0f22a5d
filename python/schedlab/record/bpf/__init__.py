"""Reads the scheduler's state on the running kernel by BPF programs on raw tracepoints.

No compiler and no library: offsets come from the kernel's type information (BTF), programs are put together here, and
what they read is printed into the trace itself (`bpf_trace_printk`), between the records of the same CPU.
"""

from __future__ import annotations

from schedlab.record.bpf.probes import EVENT, Joined, attached

__all__ = ["EVENT", "Joined", "attached"]
