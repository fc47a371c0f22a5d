"""What is recorded: the scheduler's tracepoints, and the system calls that change nice values, policies and slices."""

from __future__ import annotations

SCHED = (
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_migrate_task",
    "sched_process_fork",
    "sched_process_exit",
    "sched_stat_runtime",
)
CALLS = (
    "setpriority",
    "sched_setscheduler",
    "sched_setparam",
    "sched_setattr",
    "sched_setaffinity",
    "sched_yield",
    "setsid",
)

EVENTS = (*(f"sched/{name}" for name in SCHED), *(f"syscalls/sys_enter_{name}" for name in CALLS))
"""Paths below `events/` of tracefs. The scheduler's must be there; a kernel may lack a system call."""

CHECK_POINTS = ("raw_syscalls/sys_enter", "raw_syscalls/sys_exit")
"""They show kernel mode, and the return to user mode, where a request to reschedule is honoured."""
