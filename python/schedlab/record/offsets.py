"""Probes for kernels whose dynamic probes have no types: offsets come from the type information (BTF) in the image.

Up to 6.5 a probe reads its function's arguments as numbers only. The lines made here have the names and fields of
those in `probes.sh`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from schedlab.record.bpf.btf import Types
from schedlab.record.image import section, vmlinux

SELECT = "select_task_rq_fair"
QUEUE, TASK, RQ = "$arg1 cfs_rq", "$arg1 task_struct", "$arg1 rq"
SHARED = {1: "se.cfs_rq->rq->sd->shared", 2: "se.cfs_rq->rq->sd->parent->shared"}
"""What the CPUs of a cache share, by whether cores have several threads."""

CLOCKS = (
    # Every charge and every look at a queue begins with it: the clock by which both happen.
    f"p:e/ck update_curr cpu=[{QUEUE} rq->cpu:s32] c=[{QUEUE} rq->clock_task:u64]",
    # What comes without being woken (ENQUEUE_WAKEUP), as from the balancer.
    f"p:e/at enqueue_task_fair p=[$arg2 task_struct pid:s32] fl=$arg3:s32 cpu=[{RQ} cpu:s32] c=[{RQ} clock_task:u64]",
)
GROUPS = (
    # A group's queue is updated by the CPU that reads its load: this one or another one.
    "p:e/pc __update_load_avg_cfs_rq cpu=[$arg2 cfs_rq rq->cpu:s32] tg=[$arg2 cfs_rq tg:x64] "
    "up=[$arg2 cfs_rq tg->parent:x64] lu=$arg1:u64",
    "p:e/ba update_blocked_averages cpu=$arg1:s32",
)
FILTERS = {"at": "!(fl & 1)", "pc": "up != 0", "qa": "fl & 6"}
PASS = (
    "cpu=[$arg1 lb_env dst_cpu:s32] oi=[$arg1 lb_env idle:s32] pct=[$arg1 lb_env sd->imbalance_pct:u32] "
    "nf=[$arg1 lb_env sd->nr_balance_failed:u32] am=[$arg1 lb_env cpus->bits:x64] "
    "w=[$arg1 lb_env sd->span_weight:u32] j=@jiffies:u64 "
    "mo=[$arg1 lb_env sd->groups->sgc->imbalance:s32] mn=[$arg1 lb_env sd->groups->next->sgc->imbalance:s32]"
)
LOADS = (
    f"el=[{TASK} se.avg.load_avg:u64] ut=[{TASK} se.avg.util_avg:u64] "
    f"hl=[{TASK} se.cfs_rq->h_load:u64] ht=[{TASK} se.cfs_rq->last_h_load_update:u64]"
)
"""The averages of a task that a balancing pass considers, and the share of its queue in its CPU's load."""
AVERAGES = {
    "la": "cfs.avg.load_avg:u64",
    "ra": "cfs.avg.runnable_avg|cfs.avg.runnable_load_avg:u64",
    "ua": "cfs.avg.util_avg:u64",
    "ue": "cfs.avg.util_est.enqueued:u32",
    "pe": "cfs.avg.period_contrib:u32",
    "lt": "cfs.avg.last_update_time:u64",
    "cc": "cpu_capacity:u64",
}
"""What forks, execs (WF_FORK 4, WF_EXEC 2) and balancing passes compare CPUs by. Up to 5.6 the second is
`runnable_load_avg`."""
ALLOWED = f"am=[{TASK} cpus_ptr->bits|cpus_allowed.bits:x64]"
"""The CPUs that a task may use; up to 5.2 the mask is in the task itself."""
ASKED = "src=[{0} lb_env src_cpu:s32] ?mt=[{0} lb_env migration_type:s32] im=[{0} lb_env imbalance:s64]"


def probes(image: Path, cpus: int, threads: int, levels: int, *, groups: bool) -> str:
    """A line for each probe, with its filter behind it; nothing for an image without type information."""
    types = type_information(image)
    if types is None:
        return ""
    lines = [*CLOCKS, *(GROUPS if groups else ()), *(_several_cpus(cpus, threads, levels, types) if cpus > 1 else ())]
    found = ((line, _with_offsets(line, types)) for line in lines)
    return "".join(f"{text}\t{FILTERS.get(_name(line), '')}\n" for line, text in found if text)


DOMAIN_MEMBERS = {
    "nr_idle_scan": "shared->nr_idle_scan:s32",
    "has_idle_cores": "shared->has_idle_cores:s32",
    "span_weight": "span_weight:u32",
}
"""Members of `struct sched_domain` behind an anonymous union, which probes with types do not find in 6.6."""


def domain_members(image: Path) -> str:
    """Assignments for `probes.sh`: how each of them is fetched from a domain, which is written `@`."""
    types = type_information(image)
    found = {name: _with_offsets(f"[@ sched_domain {path}]", types) for name, path in DOMAIN_MEMBERS.items() if types}
    return "".join(f"{name}='{fetch}'\n" for name, fetch in found.items() if fetch)


def type_information(image: Path) -> Types | None:
    """That of a kernel image; `None` where it has none or is packed in a way that cannot be read."""
    elf = vmlinux(image.read_bytes())
    data = section(elf, b".BTF") if elf else None
    return Types(data) if data else None


def _several_cpus(cpus: int, threads: int, levels: int, types: Types) -> Iterator[str]:
    """Where tasks are placed and what is balanced, as in `probes.sh`."""
    # Up to 5.12 the flags of the wakeup are an argument of their own (sy, with WF_SYNC 1).
    sync = " sy=$arg4:x32" if types.parameters(SELECT) == 4 else ""
    shared = SHARED[min(threads, 2)]
    # At each level of domains above the lowest:
    # affinity kept the own group (o) or the next one (n) from being balanced.
    marks = " ".join(
        f"{name}{nth}=[{TASK} se.cfs_rq->rq->sd{nth * '->parent'}->groups{group}->sgc->imbalance:s32]"
        for nth in range(1, levels)
        for name, group in (("o", ""), ("n", "->next"))
    )
    task = f"p=[{TASK} pid:s32] nc=[{TASK} nr_cpus_allowed:s32] {ALLOWED}"
    state = (
        f"{task} wf=[{TASK} wakee_flips:u32] wt=[{TASK} wakee_flip_decay_ts:u64] "
        f"ru=[{TASK} recent_used_cpu:s32] el=[{TASK} se.avg.load_avg:u64] et=[{TASK} se.avg.last_update_time:u64] "
        f"ql=[{TASK} se.cfs_rq->rq->cfs.avg.load_avg:u64] qt=[{TASK} se.cfs_rq->rq->cfs.avg.last_update_time:u64] "
        f"?sc=[{TASK} {shared}->nr_idle_scan:s32] ic=[{TASK} {shared}->has_idle_cores:s32] "
        f"?nn=[{TASK} numa_preferred_nid:s32] ?sl=[{TASK} se.slice:u64] {marks}"
    )
    yield f"p:e/st {SELECT} prev=$arg2:s32 fl=$arg3:x32{sync} j=@jiffies:u64 {state}"
    yield from _averages(f"p:e/qa {SELECT} fl=$arg3:x32", cpus, types)
    yield f"r:e/str {SELECT} to=$retval:s32"
    yield f"p:e/bg find_busiest_group {PASS}"
    yield from _averages("p:e/qb find_busiest_group", cpus, types)
    yield "r:e/bgr find_busiest_group found=$retval:x64"
    yield f"p:e/cm can_migrate_task {ASKED.format('$arg2')} {task} {LOADS}"
    yield f"p:e/na need_active_balance {ASKED.format('$arg1')}"
    yield "r:e/lbr load_balance n=$retval:s32"


def _averages(probe: str, cpus: int, types: Types) -> Iterator[str]:
    """One probe for each CPU's runqueue, all of one name: what a selection or a pass reads of it.

    Of probes at one function those that are defined later come first.
    """
    runqueues = types.percpu("runqueues")
    for cpu in range(cpus if runqueues is not None else 0):
        area = f"@__per_cpu_offset+{8 * cpu}"
        fields = " ".join(f"{name}=[{area} rq {path} {runqueues}]" for name, path in AVERAGES.items())
        yield f"{probe} cpu=\\{cpu}:s32 {fields}"


def _name(line: str) -> str:
    return line.split()[0].partition("/")[2]


def _with_offsets(line: str, types: Types) -> str | None:
    """With `[REGISTER STRUCT PATH:TYPE]` as offsets, of a struct at an offset itself with ` OFFSET` behind it.

    Of paths with `|` between them the first that the kernel has is read. A field with `?` that it lacks is left out.
    """
    words = re.findall(r"[^\s\[]*(?:\[[^\]]*\])?\S*", line)
    kept = []
    for word in filter(None, words):
        text = re.sub(r"\[(\S+) (\S+) ([^:\]]+):(\w+) ?(\d*)\]", lambda m: _fetch(types, *m.groups()), word)
        if MISSING not in text:
            kept.append(text.removeprefix("?"))
        elif not word.startswith("?"):
            return None
    return " ".join(kept)


MISSING = "<missing>"


def _fetch(types: Types, register: str, struct_name: str, path: str, type_name: str, base: str) -> str:
    place = next(filter(None, (types.place(struct_name, name) for name in path.split("|"))), None)
    if place is None:
        return MISSING
    text = register
    first, *others = place.offsets
    for offset in (first + int(base or 0), *others):
        text = f"+{offset}({text})"
    return f"{text}:{type_name}"
