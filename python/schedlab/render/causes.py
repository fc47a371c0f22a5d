"""What makes the slowest samples of each variant slow: a sentence, where their time went, what they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from schedlab.render.amounts import NAMED, names, share, time
from schedlab.render.cells import plural
from schedlab.render.markup import cells, details, escape, table
from schedlab.render.overload import overload
from schedlab.tail import PARTS, SLOW_SHARE, Band, SeedTail, Tail

LABELS = {
    "queued": "in a queue of the workload, while the thread that then took it ran something else",
    "throttled": "runnable, but throttled: no runtime was left",
    "behind": "runnable, while other tasks ran on that CPU",
    "waking": "runnable, while nothing ran on that CPU (wakeup, idle exit)",
    "stolen": "its vCPU waited for a CPU of the host (stolen time)",
    "ran": "running",
    "served": "asleep, while the task that then woke it ran",
    "slept": "asleep, until an interrupt or a task that has ended",
    "unknown": "older than the recorded history",
}
WORDS = {
    "queued": "queueing, while the thread that then took the request ran something else",
    "throttled": "throttling",
    "behind": "waiting for a CPU behind other tasks",
    "waking": "waiting on a CPU on which nothing ran (the wakeup and the exit from idle)",
    "stolen": "stolen time, in which its vCPU waited for a CPU of the host",
    "ran": "running: these samples need more CPU time",
    "served": "sleep, while a task ran that then woke it",
    "slept": "sleep",
    "unknown": "older than the recorded history",
}


SAME = 0.01
"""If slow samples are longer than typical ones by no more than this share, nothing makes them slow."""


def growth(slow: Band, middle: Band) -> dict[str, float]:
    """What a slow sample has more of each part than one in the middle, in ns."""
    return {part: slow.mean(part) - middle.mean(part) for part in PARTS}


def dominant(slow: Band, middle: Band) -> tuple[str, float]:
    """The part that grows most, and its share of everything that grows."""
    more = growth(slow, middle)
    part = max(PARTS, key=lambda one: more[one])
    total = sum(ns for ns in more.values() if ns > 0)
    return part, more[part] / total if total else 0.0


def cause(tail: Tail, metric: str) -> str:
    """In one paragraph: what slow samples have more of, how certain that is, and whether the machine was overloaded."""
    slow, middle = tail.slow, tail.middle
    if not slow.count or not middle.count:
        return f"{tail.variant}: there are no samples of {metric}."
    part, of_it = dominant(slow, middle)
    more = growth(slow, middle)
    count = f"{slow.count:,} of {tail.samples:,} samples of {plural(len(tail.seeds), 'seed')}"
    mean, typical = slow.parts.ns / slow.count, middle.parts.ns / middle.count
    extra = sum(ns for ns in more.values() if ns > 0)
    first = f"{tail.variant}: {slowest(tail)} of {metric} ({count}) take {time(mean)} on average"
    if mean <= typical * (1 + SAME):
        text = f"{first}, hardly longer than one in the middle, so nothing makes them slow. {overload(tail, '', slow)}"
        return text.strip()
    lines = [
        f"{first}, one in the middle {time(typical)}.",
        f"Of the extra {time(extra)} over a typical one, {time(more[part])} "
        f"({share(of_it, 1)}) is {WORDS[part]}{_detail(part, slow)}.",
        _agreement(tail, part),
        _quota(tail, part) or overload(tail, part, slow),
    ]
    return " ".join(line for line in lines if line)


def slowest(tail: Tail) -> str:
    """The share of the samples that count as the slowest: 1%, or more where there are few or many are equally long."""
    return f"the slowest {share(max(tail.slow.count, SLOW_SHARE * tail.samples), tail.samples)}"


def _quota(tail: Tail, part: str) -> str:
    """That a quota may be the cause of a wait, if there is one in a kernel whose throttling is not shown."""
    if part not in ("queued", "behind", "waking", "stolen") or not any(one.quota for one in tail.seeds):
        return ""
    return (
        "A control group of the host, or of a guest that is not the first, has a quota; time in which it was throttled "
        "counts as waiting here."
    )


def _detail(part: str, slow: Band) -> str:
    """What the part consists of."""
    p = slow.parts
    if part == "throttled" and p.pools:
        return f" by the budget of {names(p.pools, p.parts['throttled'])}{_whose(slow, part)}"
    if part == "behind" and p.before:
        return f": {names(p.before, p.parts['behind'])} ran there{_whose(slow, part)}"
    if part == "stolen" and p.thieves:
        return f": {names(p.thieves, p.parts['stolen'])} ran there"
    if part == "waking":
        return _whose(slow, part)
    if part == "served" and p.servers:
        return f": {names(p.servers, p.parts['served'])}"
    if part == "slept":
        return f", ended by {_woken(slow)}"
    if part == "queued" and any(p.threads):
        of = names(slow.tasks, slow.count, only=True)
        return f"; while requests were queued, the threads of {of} were {threads(slow)}"
    return ""


def _whose(slow: Band, part: str) -> str:
    """Which tasks waited, if they are not only those of the samples."""
    p = slow.parts
    if not set(p.waiters) - set(slow.tasks):
        return ""
    waited = sum(p.parts[one] for one in ("throttled", "behind", "waking"))
    others = "" if waited == p.parts[part] else " (of all waiting)"
    return f"; it is the critical path that waited: {names(p.waiters, waited)}{others}"


def threads(slow: Band) -> str:
    """What the threads of the program did while requests waited in their queue."""
    total = sum(slow.parts.threads)
    states = ("running", "runnable without a CPU", "asleep", "throttled")
    shown = zip(slow.parts.threads, states, strict=True)
    return ", ".join(f"{share(ns, total)} {what}" for ns, what in shown if ns) or "-"


def _agreement(tail: Tail, part: str) -> str:
    """In how many seeds it is the same part, and whether one seed has most of the slow samples."""
    own = [one for one in tail.seeds if one.slow.count and one.middle.count]
    found = [dominant(one.slow, one.middle) for one in own]
    same = sum(name == part for name, _ in found)
    text = f"It is the largest part in {same} of the {plural(len(own), 'seed')} that have such samples"
    shares = sorted(of_it for name, of_it in found if name == part)
    low, high = (share(shares[i], 1) for i in (0, -1)) if shares else ("", "")
    text += f" ({low} to {high} of the extra time)." if low != high else "."
    if most := _one_seed(tail):
        text += f" Seed {most[0]} alone has {share(most[1], 1)} of them."
    return text


def difference(a: Tail, b: Tail, undecided: str = "") -> str:
    """In which parts the slowest samples of two variants differ; small ones are left out.

    `undecided` names a metric of these samples of which no change is shown.
    """
    x, y = a.slow, b.slow
    if not x.count or not y.count:
        return ""
    total = y.parts.ns / y.count - x.parts.ns / x.count
    parts = sorted(((y.mean(part) - x.mean(part), part) for part in PARTS), key=lambda one: -abs(one[0]))
    large = [one for one in parts if 100 * abs(one[0]) >= abs(parts[0][0]) > 0][:NAMED]
    shown = ", ".join(f"{'+' if ns > 0 else ''}{time(ns)} {SHORT[part]}" for ns, part in large)
    if not shown:
        return ""
    doubts = [f"no change of {undecided} is shown, so this may be chance"] if undecided else []
    for tail in (a, b):
        if most := _one_seed(tail):
            doubts.append(f"seed {most[0]} alone has {share(most[1], 1)} of {slowest(tail)} of {tail.variant}")
    way = "longer" if total > 0 else "shorter"
    doubt = f" ({'; '.join(doubts)})" if doubts else ""
    of = slowest(a) if slowest(a) == slowest(b) else "the slowest"
    return f"From {a.variant} to {b.variant} {of} become {time(abs(total))} {way}{doubt}: {shown}."


def _one_seed(tail: Tail) -> tuple[int, float] | None:
    """The seed with more than half of the slow samples, and its share of them; None if there is none."""
    most = max(tail.seeds, key=lambda one: one.slow.count)
    if len(tail.seeds) < 2 or 2 * most.slow.count <= tail.slow.count:
        return None
    return most.seed, most.slow.count / tail.slow.count


SHORT = {
    "queued": "in a queue while its thread ran",
    "throttled": "throttled",
    "behind": "behind other tasks",
    "waking": "while nothing ran",
    "stolen": "stolen from the vCPU",
    "ran": "running",
    "served": "asleep while its waker ran",
    "slept": "asleep",
    "unknown": "older than the recorded history",
}


MEANS = (
    "These times are means of the slowest samples of all seeds together; a p99 in the tables is the median of "
    "the p99 of each seed."
)


def causes(tails: Sequence[Tail], metric: str, undecided: str = "", picture: str = "") -> str:
    """The section of a page: the difference and the picture; the rest in words after a click. `undecided` as for
    `difference`.
    """
    head = f"<h2>What makes the slowest {_much(tails)}slow</h2>"
    first = difference(tails[0], tails[1], undecided) if len(tails) > 1 else ""
    words = "".join(f"<p>{escape(text)}</p>" for text in [*(cause(one, metric) for one in tails), MEANS])
    shown = (f"<p>{escape(first)}</p>" if first else "") + picture
    rest = details("The causes of each variant in words", words)
    return f"{head}{shown}{rest}{_parts(tails, metric)}{_common(tails)}"


def _much(tails: Sequence[Tail]) -> str:
    """The share that counts as slowest, if it is the same for all variants, with a space behind it."""
    found = {slowest(one).removeprefix("the slowest ") for one in tails}
    return f"{found.pop()} " if len(found) == 1 else ""


def _parts(tails: Sequence[Tail], metric: str) -> str:
    head = ["where the time went"]
    for one in tails:
        head += [f"{one.variant}, slowest", "share", f"{one.variant}, middle", "share of the extra time"]
    bands = [(one.slow, one.middle) for one in tails]
    rows = []
    for part in PARTS:
        if not any(slow.parts.parts[part] or middle.parts.parts[part] for slow, middle in bands):
            continue
        texts = [LABELS[part]]
        for slow, middle in bands:
            more = growth(slow, middle)
            total = sum(ns for ns in more.values() if ns > 0)
            texts += [time(slow.mean(part)), share(slow.parts.parts[part], slow.parts.ns), time(middle.mean(part))]
            texts.append(share(max(0.0, more[part]), total))
        rows.append(cells(head, texts))
    sums = ["together"]
    for slow, middle in bands:
        sums += [time(b.parts.ns / b.count) if b.count else "-" for b in (slow, middle)]
        sums[-1:] = ["100%", sums[-1], "100%"]
    rows.append(cells(head, sums))
    of = ", ".join(f"{slowest(one)} of {one.variant}" for one in tails)
    caption = f"Samples of {metric} of all seeds: {of}, and those between the 40th and 60th percentile; mean per sample"
    return table(caption, head, rows, cards=True)


def _common(tails: Sequence[Tail]) -> str:
    """What the slowest samples have in common."""
    head = [f"the slowest {_much(tails)}".strip(), *(one.variant for one in tails)]
    rows = []
    for label, of in QUESTIONS:
        answers = [of(one) for one in tails]
        if any(answers):
            looks = ["why"] * len(answers)
            rows.append(cells(head, [label, *(answer or "-" for answer in answers)], looks=looks))
    return table("What the slowest samples have in common, over all seeds", head, rows, cards=True, words=True)


def _count(tail: Tail) -> str:
    return f"{tail.slow.count:,}, of {time(tail.from_ns)} and more"


def _instead(tail: Tail) -> str:
    p = tail.slow.parts
    return names(p.before, p.parts["behind"]) if p.before else ""


def _pools(tail: Tail) -> str:
    p = tail.slow.parts
    return names(p.pools, p.parts["throttled"]) if p.pools else ""


def _waiters(tail: Tail) -> str:
    p = tail.slow.parts
    return names(p.waiters, p.waiters.total()) if p.waiters else ""


def _in_queue(tail: Tail) -> str:
    p = tail.slow.parts
    return f"{share(p.in_queue, p.ns)} of their time, which the parts above contain" if p.in_queue else ""


def _servers(tail: Tail) -> str:
    p = tail.slow.parts
    return names(p.servers, p.parts["served"]) if p.servers else ""


def _elsewhere(tail: Tail) -> str:
    p = tail.slow.parts
    return f"{share(p.elsewhere, p.parts['behind'])} of it; affinity is not considered" if p.parts["behind"] else ""


def _threads(tail: Tail) -> str:
    return threads(tail.slow) if sum(tail.slow.parts.threads) else ""


def _woken(slow: Band) -> str:
    kinds = {"interrupt": "a timer or an interrupt", "unknown": "an unknown waker"}
    found = Counter({kinds.get(kind, name): ns for (kind, name), ns in slow.parts.wakers.items()})
    return names(found, slow.parts.parts["slept"])


def _sleep(tail: Tail) -> str:
    return _woken(tail.slow) if tail.slow.parts.wakers else ""


def _thieves(tail: Tail) -> str:
    p = tail.slow.parts
    return names(p.thieves, p.parts["stolen"]) if p.thieves else ""


def _tasks(tail: Tail) -> str:
    return names(tail.slow.tasks, tail.slow.count)


def _lanes(tail: Tail) -> str:
    slow = tail.slow
    guest = next(iter(slow.lanes), "").rpartition("CPU ")[0].strip()
    load = next((one for one in tail.seeds[0].loads if one.kernel == guest), tail.seeds[0].loads[0])
    even = share(1, len(load.busy))
    return f"{names(slow.lanes, slow.count)}; spread evenly each of {plural(len(load.busy), 'CPU')} would have {even}"


def _times(tail: Tail) -> str:
    tenth, count = tail.slow.tenths.most_common(1)[0] if tail.slow.count else (0, 0)
    return f"at most {share(count, tail.slow.count)} in one tenth of the run, the {ORDER[tenth]}; an even spread is 10%"


def _seeds(tail: Tail) -> str:
    slow = Counter({one.seed: one.slow.count for one in tail.seeds})
    seed, count = slow.most_common(1)[0]
    having = sum(n > 0 for n in slow.values())
    return f"in {having} of {len(tail.seeds)}; at most {share(count, tail.slow.count)} in one, seed {seed}"


def by_thirds(seeds: Sequence[SeedTail]) -> list[float | None]:
    """The mean sample in the first, the second and the last third of the runs, in ns."""
    found: list[float | None] = []
    for low, high in ((0, 3), (3, 7), (7, 10)):
        tenths = [tenth for one in seeds for tenth in one.tenths[low:high]]
        count = sum(n for n, _ in tenths)
        found.append(sum(ns for _, ns in tenths) / count if count else None)
    return found


ORDER = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
QUESTIONS = (
    ("how many", _count),
    ("what waited for a CPU", _waiters),
    ("what had no runtime left", _pools),
    ("while it was runnable, what ran there", _instead),
    ("meanwhile another CPU was idle", _elsewhere),
    ("in a queue of the workload", _in_queue),
    ("while it was queued, the threads were", _threads),
    ("what ran before it woke the task", _servers),
    ("what ended its sleep", _sleep),
    ("what ran on the vCPU's host CPU", _thieves),
    ("which tasks", _tasks),
    ("on which CPUs they ended", _lanes),
    ("when", _times),
    ("in which seeds", _seeds),
)
