"""Random machines and loads: drawn from a seed, the same on every machine."""

from __future__ import annotations

from random import Random

from schedlab.compiled.load import Group, Load, Step, Task, Topology

FEATURES = ["nice", "policy", "slice", "affinity", "group", "quota", "wake", "fork", "yield", "rt", "renice"]
"""What a load may contain beyond tasks that run and sleep."""

MACHINES = {
    1: (Topology(),),
    4: (
        Topology(cores_per_llc=4),
        Topology(cores_per_llc=2, threads_per_core=2),
        Topology(llcs_per_node=2, cores_per_llc=2),
    ),
    16: (
        Topology(cores_per_llc=8, threads_per_core=2),
        Topology(nodes=2, cores_per_llc=8),
        Topology(llcs_per_node=4, cores_per_llc=4),
    ),
    64: (
        Topology(nodes=2, cores_per_llc=16, threads_per_core=2),
        Topology(llcs_per_node=8, cores_per_llc=8),
        Topology(nodes=2, llcs_per_node=4, cores_per_llc=4, threads_per_core=2),
    ),
    480: (
        Topology(nodes=4, cores_per_llc=60, threads_per_core=2),
        Topology(nodes=2, llcs_per_node=15, cores_per_llc=8, threads_per_core=2),
    ),
}


def draw(seed: int, cpus: int, duration_ns: int, features: list[str]) -> Load:
    """A load for a machine of so many CPUs, with every one of `features` that chance selects."""
    random = Random(f"{seed}/{cpus}")
    topology = random.choice(MACHINES[cpus]) if cpus in MACHINES else Topology(cores_per_llc=cpus)
    chosen = {feature for feature in features if random.random() < 0.5}
    groups = _groups(random, chosen)
    programs = list[tuple[Step, ...]]()
    tasks = list[Task]()
    wanted = max(2, round(cpus * random.choice((0.6, 1.2, 2.0, 3.0))))
    while len(tasks) < wanted:
        # The semaphore has the number of the program that posts it.
        if "wake" in chosen and random.random() < 0.4:
            programs += _pair(random, len(programs))
        else:
            programs.append(_alone(random, chosen))
        while len(tasks) < len(programs):
            tasks.append(_task(random, chosen, len(tasks), len(groups), cpus))
    if "fork" in chosen:
        tasks += _forks(random, programs, len(groups))
    return Load(
        topology=topology,
        duration_ns=duration_ns,
        programs=tuple(programs),
        tasks=tuple(tasks),
        groups=tuple(groups),
        features=(("NI_RANDOM", False),),
    )


def _length(random: Random, least: int, most: int) -> int:
    """Lengths of all orders of magnitude between two, in ns; odd, so that they rarely end together."""
    import math

    return int(math.exp(random.uniform(math.log(least), math.log(most)))) | 1


def _alone(random: Random, chosen: set[str]) -> tuple[Step, ...]:
    if random.random() < 0.25:
        steps: list[Step] = [("r", _length(random, 500_000, 50_000_000))]
    else:
        steps = []
        for _ in range(random.randint(1, 6)):
            steps += [("r", _length(random, 20_000, 8_000_000)), ("s", _length(random, 50_000, 12_000_000))]
    if "yield" in chosen and random.random() < 0.2:
        steps += [("r", _length(random, 20_000, 1_000_000)), ("y", 0)]
    if "renice" in chosen and random.random() < 0.2:
        steps += [("r", _length(random, 20_000, 3_000_000)), ("n", random.randint(10, 30))]
        steps += [("r", _length(random, 20_000, 3_000_000)), ("n", 20)]
    return tuple(steps)


def _pair(random: Random, number: int) -> list[tuple[Step, ...]]:
    """One task that wakes another, which mostly waits."""
    waker: list[Step] = []
    for _ in range(random.randint(1, 4)):
        waker += [("r", _length(random, 20_000, 3_000_000)), ("p", number), ("r", _length(random, 5_000, 500_000))]
        if random.random() < 0.7:
            waker.append(("s", _length(random, 50_000, 5_000_000)))
    return [tuple(waker), (("w", number), ("r", _length(random, 20_000, 4_000_000)))]


def _forks(random: Random, programs: list[tuple[Step, ...]], groups: int) -> list[Task]:
    """Tasks that fork children, which exit after some work."""
    tasks = []
    for _ in range(random.randint(1, 3)):
        child = len(programs)
        programs.append(
            (
                ("r", _length(random, 20_000, 4_000_000)),
                ("s", _length(random, 50_000, 900_000)),
                ("r", _length(random, 20_000, 2_000_000)),
                ("x", 0),
            )
        )
        programs.append(
            (
                ("r", _length(random, 100_000, 3_000_000)),
                ("f", child),
                ("r", _length(random, 20_000, 900_000)),
                ("s", _length(random, 2_000_000, 20_000_000)),
            )
        )
        tasks.append(Task(program=child + 1, group=random.randint(0, groups)))
    return tasks


def _task(random: Random, chosen: set[str], program: int, groups: int, cpus: int) -> Task:
    policy, priority = "normal", 0
    if "policy" in chosen and random.random() < 0.2:
        policy = random.choice(("batch", "idle"))
    if "rt" in chosen and random.random() < 0.1:
        policy, priority = random.choice(("fifo", "rr")), random.randint(1, 20)
    affinity: tuple[int, ...] = ()
    if "affinity" in chosen and cpus > 1 and random.random() < 0.2:
        affinity = tuple(sorted(random.sample(range(cpus), random.randint(1, min(cpus, 8)))))
    return Task(
        program=program,
        nice=random.randint(-10, 15) if "nice" in chosen and random.random() < 0.7 else 0,
        policy=policy,
        priority=priority,
        # sched_setattr sets no slice of SCHED_IDLE tasks (fair_policy); rows accept one, a known difference.
        slice_ns=_length(random, 200_000, 20_000_000)
        if "slice" in chosen and random.random() < 0.3 and policy != "idle"
        else 0,
        group=random.randint(0, groups) if groups else 0,
        cpus=affinity,
    )


def _groups(random: Random, chosen: set[str]) -> list[Group]:
    if not chosen & {"group", "quota"}:
        return []
    groups = list[Group]()
    for number in range(random.randint(1, 4)):
        # Periods of different lengths: two timers that expire at once have no order that both sides must share.
        period = random.randint(20_000, 150_000)
        quota = 0
        if "quota" in chosen and random.random() < 0.4:
            quota = random.randint(period // 20, period * 9 // 10)
        weight = random.choice((20, 50, 100, 100, 300, 1000)) if "group" in chosen else 100
        groups.append(Group(parent=random.randint(0, number), weight=weight, quota_us=quota, period_us=period))
    return groups
