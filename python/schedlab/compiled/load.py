"""A load without costs, for both sides: as a scenario for the simulator and as input of a native scheduler."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

VERSION = 1
"""The version of the protocol, see `shim/load.c`."""

SLACK_NS = 1
"""Timer slack of every task; the smallest that a scenario accepts."""

POLICIES = {"normal": 0, "fifo": 1, "rr": 2, "batch": 3, "idle": 5}

Step = tuple[str, int]
"""A letter of the protocol and its number: r runs ns, s sleeps ns, p posts a semaphore, w waits on one, y yields, f
forks a child with a program, n sets the nice value (20 added), x exits."""


@dataclass(frozen=True)
class Topology:
    """A machine of identical CPUs, as the keys of [topology] describe it."""

    nodes: int = 1
    llcs_per_node: int = 1
    cores_per_llc: int = 1
    threads_per_core: int = 1

    @property
    def cores(self) -> int:
        """All cores."""
        return self.nodes * self.llcs_per_node * self.cores_per_llc

    @property
    def cpus(self) -> int:
        """All CPUs."""
        return self.cores * self.threads_per_core

    def cpu(self, cpu: int) -> tuple[int, int, int]:
        """Core, last-level cache and node of a CPU; the first threads of all cores are numbered first."""
        core = cpu % self.cores
        llc = core // self.cores_per_llc
        return core, llc, llc // self.llcs_per_node


@dataclass(frozen=True)
class Task:
    """A task that exists from the start."""

    program: int
    nice: int = 0
    policy: str = "normal"
    priority: int = 0
    slice_ns: int = 0
    group: int = 0
    cpus: tuple[int, ...] = ()
    """Its affinity; empty: every CPU."""


@dataclass(frozen=True)
class Group:
    """A control group of the cpu controller."""

    parent: int = 0
    weight: int = 100
    quota_us: int = 0
    period_us: int = 100_000


@dataclass(frozen=True)
class Load:
    """Machine, control groups, tasks and their programs; every program is repeated unless it exits."""

    topology: Topology
    duration_ns: int
    programs: tuple[tuple[Step, ...], ...]
    tasks: tuple[Task, ...]
    groups: tuple[Group, ...] = ()
    features: tuple[tuple[str, bool], ...] = ()
    hz: int = 250

    def native(self) -> str:
        """The input of a native scheduler."""
        return "\n".join(self._native()) + "\n"

    def _native(self) -> Iterator[str]:
        yield f"schedlab-native {VERSION}"
        yield f"cpus {self.topology.cpus}"
        for cpu in range(self.topology.cpus):
            yield "cpu {} {} {} {}".format(cpu, *self.topology.cpu(cpu))
        for a in range(self.topology.nodes):
            for b in range(self.topology.nodes):
                yield f"distance {a} {b} {10 if a == b else 20}"
        yield "boot"
        for name, value in self.features:
            yield f"feature {name} {int(value)}"
        for group in self.groups:
            yield f"group {group.parent} {group.weight} {group.quota_us} {group.period_us}"
        for program in self.programs:
            steps = [f"{letter}{number}" for letter, number in program]
            yield "program " + " ".join([*steps, "l0"])
        for task in self.tasks:
            cpus = ",".join(map(str, task.cpus)) or "-"
            yield (
                f"task {task.program} {task.nice} {POLICIES[task.policy]} {task.priority} {task.slice_ns} "
                f"{task.group} {cpus}"
            )
        yield f"run {self.duration_ns}"

    def scenario(self, kernel: str) -> str:
        """The same load as the text of a scenario file, with one variant `row`."""
        return "\n".join([*self._head(), *self._workload(), *self._variant(kernel)]) + "\n"

    def _head(self) -> Iterator[str]:
        topology = self.topology
        yield f"duration = {quoted(f'{self.duration_ns}ns')}"
        yield "seeds = 1"
        yield "noise = false"
        yield "[machine]"
        yield f"hz = {self.hz}"
        yield zero_machine()
        yield "[machine.topology]"
        yield f"nodes = {topology.nodes}"
        yield f"llcs-per-node = {topology.llcs_per_node}"
        yield f"cores-per-llc = {topology.cores_per_llc}"
        yield f"threads-per-core = {topology.threads_per_core}"
        if topology.threads_per_core > 1:
            yield f"smt-rates = {json.dumps(['100%'] * topology.threads_per_core)}"
        yield 'source = "drawn"'
        for number, group in enumerate(self.groups, 1):
            yield "[[cgroup]]"
            yield f"name = {quoted(self._path(number))}"
            yield f"weight = {group.weight}"
            if group.quota_us:
                yield f'quota = "{group.quota_us}us"'
                yield f'period = "{group.period_us}us"'

    def _path(self, number: int) -> str:
        group = self.groups[number - 1]
        own = f"g{number}"
        return f"{self._path(group.parent)}/{own}" if group.parent else own

    def _workload(self) -> Iterator[str]:
        yield "[[workload]]"
        yield 'name = "load"'
        for number, task in enumerate(self.tasks, 1):
            yield "[[workload.task]]"
            yield f'name = "t{number}"'
            yield from self._attributes(task)
            yield f"program = {self._program(task.program)}"
        forked = {number for program in self.programs for letter, number in program if letter == "f"}
        for program in sorted(forked):
            yield "[[workload.task]]"
            yield f'name = "child{program}"'
            yield "count = 0"
            yield f"program = {self._program(program)}"

    def _attributes(self, task: Task) -> Iterator[str]:
        yield f"nice = {task.nice}"
        yield f'timer-slack = "{SLACK_NS}ns"'
        if task.policy in ("fifo", "rr"):
            yield f'policy = "{task.policy}:{task.priority}"'
        elif task.policy != "normal":
            yield f'policy = "{task.policy}"'
        if task.slice_ns:
            yield f'slice = "{task.slice_ns}ns"'
        if task.group:
            yield f"cgroup = {quoted(self._path(task.group))}"
        if task.cpus:
            yield f"cpus = {quoted(','.join(map(str, task.cpus)))}"

    def _program(self, number: int) -> str:
        body = ", ".join(_step(step) for step in self.programs[number])
        return f'[ {{ loop = "forever", do = [ {body} ] }} ]'

    def _variant(self, kernel: str) -> Iterator[str]:
        yield "[[variant]]"
        yield 'name = "row"'
        yield f"kernel = {quoted(kernel)}"
        if self.features:
            inner = ", ".join(f"{name} = {str(value).lower()}" for name, value in self.features)
            yield f"features = {{ {inner} }}"


def _step(step: Step) -> str:
    letter, number = step
    verbs = {
        "r": f'{{ run = "{number}ns" }}',
        "s": f'{{ sleep = "{number}ns" }}',
        "p": f'{{ sem-post = "s{number}" }}',
        "w": f'{{ sem-wait = "s{number}" }}',
        "y": '"yield"',
        "n": f"{{ nice = {number - 20} }}",
        "f": f'{{ fork = "child{number}", as = "thread" }}',
        "x": '"exit"',
    }
    return verbs[letter]


def quoted(text: str) -> str:
    """A TOML string."""
    return json.dumps(text)


@cache
def zero_machine() -> str:
    """The tables of a machine on which nothing costs time."""
    return files("schedlab.compiled").joinpath("zero-costs.toml").read_text()


def only(load: Load, tasks: Sequence[int]) -> Load:
    """The load with these of its tasks."""
    return replace(load, tasks=tuple(load.tasks[i] for i in tasks))
