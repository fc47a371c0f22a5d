"""The flags of the commands that use real kernels: record, doctor, calibrate, validate."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedlab.cli import values
from schedlab.guests.emulation import EMULATIONS


def record(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--kernel",
        required=True,
        metavar="KERNEL",
        help="an image file; a Debian kernel by version, suite or package (6.1, trixie, linux-image-...); `running`",
    )
    p.add_argument("--cpus", type=values.positive, metavar="N", help="CPUs of the virtual machine (default: 1)")
    p.add_argument("--smp", metavar="WORDS", help="how QEMU arranges the CPUs: sockets=1,cores=2,threads=2")
    p.add_argument("--nodes", type=values.positive, metavar="N", help="NUMA nodes of equal size (default: 1)")
    p.add_argument(
        "--emulation",
        choices=tuple(EMULATIONS),
        help="one host thread per CPU, one thread for all CPUs, or one thread with a clock that counts instructions",
    )
    p.add_argument("--out", type=Path, metavar="FILE", help="the trace; the suffix selects the format")
    p.add_argument("--records", type=values.natural, default=0, metavar="N", help="keep only the first N records")
    p.add_argument("--no-probes", dest="probes", action="store_false", help="do not record the scheduler's state")
    p.add_argument("--memory", type=values.positive, default=1536, metavar="MB", help="guest memory (default: 1536)")
    p.add_argument(
        "--time-limit",
        type=values.positive,
        default=300,
        metavar="S",
        help="guest time limit (default: 300)",
    )
    p.add_argument("--append", default="", metavar="WORDS", help="additional parameters for the kernel's command line")
    p.add_argument("--autogroup", action="store_true", help="enable autogroup in the guest")
    p.add_argument(
        "--check-points",
        action="store_true",
        help="record system calls and __cond_resched, so that replay can judge when reschedule requests are honoured",
    )
    p.add_argument("--chaos", type=values.natural, metavar="SEED", help="record a random load made from SEED instead")
    p.add_argument("workload", nargs="*", metavar="WORKLOAD", help="after --: a command, or one shell command line")


def doctor(p: argparse.ArgumentParser) -> None:
    work = p.add_mutually_exclusive_group()
    work.add_argument("--restore", action="store_true", help="restore settings that a killed run left changed")
    work.add_argument("--fetch", metavar="ROW", help="download the kernel image of a row or sublevel into the cache")
    work.add_argument(
        "--measure",
        action="store_true",
        help="also measure caches, memory, and the transfer of a cache line between each pair of CPUs (some seconds)",
    )
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write the findings as JSON; - is stdout")


def calibrate(p: argparse.ArgumentParser) -> None:
    p.add_argument("--arm", choices=("host", "vm"), default="host", help="measure this machine (host) or a guest (vm)")
    p.add_argument("--kernel", metavar="ROW", help="the guest's kernel (default: 6.12.107)")
    p.add_argument("--quick", action="store_true", help="fewer repetitions")
    p.add_argument("--traced", action="store_true", help="enable the tracepoints, which separate the parts of a cost")
    p.add_argument(
        "--sections",
        action="store_true",
        help="measure where system calls of a guest's kernel may reschedule, and its spinlocks, instead of costs",
    )
    p.add_argument("--out", type=Path, metavar="FILE", help="write the machine file or the table (default: stdout)")


def validate(p: argparse.ArgumentParser) -> None:
    p.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="scenario files")
    p.add_argument("--arm", choices=("host", "vm"), default="vm", help="the real kernel (default: vm)")
    p.add_argument("--machine", metavar="FILE", help="a calibrated machine file (default: calibrate first)")
    p.add_argument("--seeds", type=values.seeds, metavar="N|LIST", help="number of seeds or a list")
    p.add_argument("--jobs", type=values.jobs, metavar="N", help="runs at the same time")
    p.add_argument("--runs", type=Path, metavar="DIR", help="store real runs and calibrations in DIR and reuse them")
    p.add_argument("--store", type=Path, metavar="FILE", help="write the validation for `compare --validity`")
    p.add_argument(
        "--stored",
        nargs="?",
        const="",
        metavar="FILE",
        help="show a stored validation (default: schedlab's own)",
    )
    p.add_argument("--resimulate", action="store_true", help="repeat the simulated runs of a stored validation")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write all values as JSON; - is stdout")
    p.add_argument("--out", type=Path, metavar="FILE", help="write a Markdown page")
