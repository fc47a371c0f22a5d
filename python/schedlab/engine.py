"""The only interface to the Rust engine: JSON becomes typed data, the engine's errors become schedlab's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from schedlab import documents
from schedlab.errors import ArmError, BugError, Cancelled, InputError, RunError, ScenarioError, SchedlabError
from schedlab.frozen import Frozen
from schedlab.outcome import Run
from schedlab.scenario import Scenario

if TYPE_CHECKING:
    from schedlab.native.changed import Difference, KernelChanges
    from schedlab.native.explained import FirstDifference, MetricDifference, Moment
    from schedlab.native.extracted import Extraction, PoolMetrics
    from schedlab.native.replayed import Report
    from schedlab.native.runs import Columns, Tail
    from schedlab.native.waited import Waits
    from schedlab.studies.study import Study

KINDS = ("machines", "kernels", "distributions", "features", "workloads", "knobs", "metrics", "studies")
ARMS = {"sim": "simulated", "host": "measured", "vm": "measured in QEMU"}
"""The arms, and the word that goes with every figure of each."""


class Cancel(Protocol):
    """Stops the runs that were given it."""

    def cancel(self) -> None: ...


class Handle(Protocol):
    """Stops one run and shows its progress."""

    @property
    def now_ns(self) -> int: ...


class Kept:
    """The samples of some metrics that were kept of a run."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def tail(self, metric: str, bands: Sequence[tuple[int, int]]) -> Tail | None:
        """What `Engine.tail` answers; None if that must repeat the run."""
        text = self._native.tail(metric, list(bands))
        found: Tail | None = text and documents.loads(text)
        return found


class UnderWay(Frozen):
    """A run that has not ended yet."""

    label: str
    now_ns: int
    """The simulated time that it has reached."""
    duration_ns: int
    """The time at which it ends at the latest."""


class TraceSample:
    """Parts of a trace that every row can be tried on."""

    def __init__(self, native: Any) -> None:
        self._native = native

    def rows(self) -> list[str]:
        """All rows, that of the recorded kernel first."""
        return list(self._native.rows())

    def replay(self, row: str, *, cancel: Cancel | None = None) -> Report:
        """The report of a row on these parts."""
        text = self._native.replay(row, cancel=cancel)
        if text is None:
            raise Cancelled("stopped before the end of the trace")
        report: Report = documents.loads(text)
        return report


class Engine:
    """The calls that the rest of schedlab makes; `native` is the compiled module, or a stand-in for it in tests."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._under_way: dict[Handle, tuple[str, int]] = {}

    def load(self, path: str, overrides: Mapping[str, Any] | None = None) -> Scenario:
        """Read and validate a scenario file; `overrides` is what `overrides.engine_overrides` makes."""
        with self._translated():
            handle = self._native.load(path, json.dumps(overrides) if overrides else None)
            return _scenario(handle)

    def loads(self, text: str, name: str, overrides: Mapping[str, Any] | None = None) -> Scenario:
        """Validate a scenario given as text; `name` is what errors call it."""
        with self._translated():
            handle = self._native.loads(text, name, json.dumps(overrides) if overrides else None)
            return _scenario(handle)

    def load_study(self, name: str, *, short: bool = False, units: int | None = None) -> Study:
        """Read and validate a study by its id or path, with the scenarios of its cases."""
        from schedlab.studies.study import Study

        with self._translated():
            study = self._native.load_study(name, short, units)

        def scenario(number: int) -> Scenario:
            handle = study.scenario(number)
            return Scenario.from_description(json.loads(handle.describe()), handle)

        return Study.from_description(json.loads(study.describe()), scenario)

    @property
    def version(self) -> str:
        """The engine's name and version."""
        return str(self._native.ENGINE)

    def build(self) -> str:
        """Identifies this build of the engine, so that runs of another build are not mistaken for its own."""
        import hashlib

        return hashlib.sha256(Path(self._native.__file__).read_bytes()).hexdigest()

    def spec(self, scenario: Scenario, variant: str) -> str:
        """Everything that a simulated run of a variant depends on but its seed and the engine, as text for a hash."""
        with self._translated():
            return str(scenario.handle.spec(variant))

    def run(
        self,
        scenario: Scenario,
        variant: str,
        seed: int,
        *,
        trace: str | None = None,
        cancel: Cancel | None = None,
        check_determinism: bool = False,
        keep: Sequence[str] = (),
    ) -> Run:
        """One run; the GIL is free meanwhile. The samples of the metrics `keep` are kept if no trace is written."""
        with (
            self._translated(f" (variant `{variant}`, seed {seed})"),
            self._noted(scenario, f"{variant} seed {seed}", cancel) as handle,
        ):
            kept = None
            if keep and trace is None and not check_determinism:
                text, kept = self._native.run_keeping(scenario.handle, variant, seed, list(keep), cancel=handle)
            else:
                text = self._native.run(
                    scenario.handle, variant, seed, trace=trace, cancel=handle, check_determinism=check_determinism
                )
        record = documents.loads(text)
        mismatch = record.pop("determinism", "same")
        if mismatch != "same":
            raise RunError(f"two runs of {variant} seed {seed} differ: {mismatch}", hint="this is a bug in schedlab")
        return Run.from_record(record, kept and Kept(kept))

    def timeline(
        self,
        scenario: Scenario,
        variant: str,
        seed: int,
        *,
        around: tuple[list[int], int] | None = None,
        cancel: Cancel | None = None,
    ) -> Columns:
        """One run as the columns of a timeline, with its digest; nothing is written to disk.

        `around` are points of time (ns) and how many records are kept before and after each; None: all of the run.
        """
        with (
            self._translated(f" (variant `{variant}`, seed {seed})"),
            self._noted(scenario, f"{variant} seed {seed}", cancel) as handle,
        ):
            found: Columns = documents.loads(
                self._native.timeline(scenario.handle, variant, seed, around=around, cancel=handle)
            )
            return found

    def tail(
        self,
        scenario: Scenario,
        variant: str,
        seed: int,
        metric: str,
        bands: Sequence[tuple[int, int]],
        *,
        cancel: Cancel | None = None,
    ) -> Tail:
        """Where the time of the samples of a metric went that lie within each band of durations (ns), and the load."""
        with (
            self._translated(f" (variant `{variant}`, seed {seed})"),
            self._noted(scenario, f"{variant} seed {seed}", cancel) as handle,
        ):
            text = self._native.tail(scenario.handle, variant, seed, metric, list(bands), cancel=handle)
        found: Tail = documents.loads(text)
        return found

    def ablation(self, scenario: Scenario, a: str, b: str) -> list[Difference]:
        """What variant `b` does differently from `a`."""
        with self._translated():
            rows: list[Difference] = documents.loads(self._native.ablation(scenario.handle, a, b))
            return rows

    def run_hybrid(
        self, scenario: Scenario, a: str, b: str, names: list[str], seed: int, *, cancel: Cancel | None = None
    ) -> Run:
        """Variant `a` with some of the differences taken from `b`."""
        named = ", ".join(names)
        with (
            self._translated(f" (variant `{a}` with {named}, seed {seed})"),
            self._noted(scenario, f"{a} with {named} seed {seed}", cancel) as handle,
        ):
            text = self._native.run_hybrid(scenario.handle, a, b, names, seed, cancel=handle)
        return Run.from_record(documents.loads(text))

    def explain(
        self, scenario: Scenario, a: str, b: str, seed: int, *, cancel: Cancel | None = None
    ) -> FirstDifference | None:
        """The first decision that differs between two variants; `None` if all events are equal."""
        with self._translated(f" (variants `{a}` and `{b}`, seed {seed})"):
            text = self._native.explain(scenario.handle, a, b, seed, cancel=cancel)
            divergence: FirstDifference | None = documents.loads(text)
            return divergence

    def explain_metric(
        self, scenario: Scenario, a: str, b: str, seed: int, metric: str, *, cancel: Cancel | None = None
    ) -> MetricDifference | None:
        """The decision on which the slow samples of a metric depend; `None` if not both variants have such samples."""
        with self._translated(f" (variants `{a}` and `{b}`, seed {seed})"):
            text = self._native.explain_metric(scenario.handle, a, b, seed, metric, cancel=cancel)
            found: MetricDifference | None = documents.loads(text)
            return found

    def why(
        self, scenario: Scenario, variant: str, seed: int, task: str, at_ns: int, *, cancel: Cancel | None = None
    ) -> Moment:
        """Why a task waits, runs or sleeps at a moment."""
        with self._translated(f" (variant `{variant}`, seed {seed})"):
            text = self._native.why(scenario.handle, variant, seed, task, at_ns, cancel=cancel)
            answer: Moment = documents.loads(text)
            return answer

    def changes(self, a: str, b: str) -> KernelChanges:
        """What changed from kernel `a` to kernel `b`: both, and `differences` with their commits."""
        with self._translated():
            found: KernelChanges = documents.loads(self._native.changes(a, b))
            return found

    def listing(self, kind: str, kernel: str | None = None) -> list[dict[str, Any]]:
        """What exists of one kind, as plain rows with at least `id` and `summary`."""
        with self._translated():
            rows: list[dict[str, Any]] = documents.loads(self._native.listing(kind, kernel))
            return rows

    def convert(
        self, source: str, target: str, *, buffer: str | None = None, cancel: Cancel | None = None
    ) -> dict[str, Any]:
        """Copy a trace into the format of the target's suffix; says what was copied, and `notes` of what was left out.

        Of several ring buffers, the one called `buffer` is read.
        """
        with self._translated():
            text = self._native.convert(source, target, buffer=buffer, cancel=cancel)
            copied: dict[str, Any] = documents.loads(text)
            return copied

    def replay(
        self,
        trace: str,
        kernel: str | None = None,
        *,
        matrix: bool = False,
        first: int | None = None,
        explain: tuple[str, int] | None = None,
        cancel: Cancel | None = None,
    ) -> list[Report]:
        """Reports of one kernel row, or of every row, on a recorded trace; the first explains a task at a time (ns)."""
        with self._translated():
            text = self._native.replay(trace, kernel, matrix=matrix, first=first, explain=explain, cancel=cancel)
            reports: list[Report] = documents.loads(text)
            return reports

    def sample(self, trace: str, *, first: int = 1, cancel: Cancel | None = None) -> TraceSample:
        """Parts of a recorded trace, to try rows on them within bounds of time and memory."""
        with self._translated():
            return TraceSample(self._native.TraceSample(trace, first=first, cancel=cancel))

    def waits(self, trace: str, *, keep: int = 1, only: str | None = None, cancel: Cancel | None = None) -> Waits:
        """The `keep` longest waits of each task of a trace, or of the task `only` (a pid or a name)."""
        with self._translated():
            found: Waits = documents.loads(self._native.waits(trace, keep=keep, only=only, cancel=cancel))
            return found

    def whatif(self, trace: str, kernel: str | None = None, *, cancel: Cancel | None = None) -> Extraction:
        """The programs of a recorded trace as a scenario; `kernel` is the row that it was recorded on."""
        with self._translated():
            found: Extraction = documents.loads(self._native.whatif(trace, kernel, cancel=cancel))
            return found

    def whatif_run(
        self, scenario: Scenario, variant: str, seed: int, pools: Mapping[str, str], *, cancel: Cancel | None = None
    ) -> dict[str, PoolMetrics]:
        """The metrics of each pool in one run; `pools` has the pool of each task, by their names."""
        with (
            self._translated(f" (variant `{variant}`, seed {seed})"),
            self._noted(scenario, f"{variant} seed {seed}", cancel) as handle,
        ):
            text = self._native.whatif_run(scenario.handle, variant, seed, dict(pools), cancel=handle)
        found: dict[str, PoolMetrics] = documents.loads(text)
        return found

    def row_of(self, release: str) -> str | None:
        """The version row of a kernel release such as `6.12.107+deb13-cloud-amd64`."""
        row: str | None = self._native.row_of(release)
        return row

    def kernel_btf(self, path: str) -> bytes:
        """The BTF of a kernel: of an image, of `vmlinux`, or of a file of BTF."""
        with self._translated(f" ({path})"):
            return bytes(self._native.kernel_btf(path))

    def scx_check(self, path: str, kernels: Sequence[str]) -> dict[str, Any]:
        """What each kernel lacks for the sched_ext scheduler in an object; kernels are files as for `kernel_btf`."""
        with self._translated(f" ({path})"):
            found: dict[str, Any] = documents.loads(self._native.scx_check(path, list(kernels)))
            return found

    def scx_stress(
        self,
        path: str,
        kernel: str,
        seeds: Sequence[int],
        *,
        cpus: int,
        tasks: int,
        duration_ns: int,
        variables: Sequence[tuple[str, int]] = (),
    ) -> dict[str, Any]:
        """How the sched_ext scheduler in an object ends under a random load per seed; `kernel` as for `kernel_btf`."""
        with self._translated(f" ({path})"):
            text = self._native.scx_stress(
                path,
                kernel,
                list(seeds),
                cpus=cpus,
                tasks=tasks,
                duration_ns=duration_ns,
                variables=list(variables),
            )
            found: dict[str, Any] = documents.loads(text)
            return found

    def cancel(self) -> Cancel:
        """A fresh handle to stop runs with."""
        handle: Cancel = self._native.Cancel()
        return handle

    def under_way(self) -> list[UnderWay]:
        """The runs that have begun and not ended, in the order in which they began."""
        return [UnderWay(label, handle.now_ns, end) for handle, (label, end) in list(self._under_way.items())]

    @contextmanager
    def _noted(self, scenario: Scenario, label: str, cancel: Cancel | None) -> Iterator[Handle]:
        """A handle of its own for a run, which `under_way` shows until the run ends."""
        native: Any = cancel or self._native.Cancel()
        handle: Handle = native.of_run()
        self._under_way[handle] = (label, scenario.duration_ns)
        try:
            yield handle
        finally:
            del self._under_way[handle]

    @contextmanager
    def _translated(self, doing: str = "") -> Iterator[None]:
        native = self._native
        kinds = ((native.ScenarioError, ScenarioError), (native.RunError, RunError), (native.Cancelled, Cancelled))
        try:
            yield
        except native.EngineError as e:
            kind = next((ours for theirs, ours in kinds if isinstance(e, theirs)), None)
            if e.exit_code == BugError.exit_code:
                kind = BugError
            raise _convert(e, kind or (InputError if e.exit_code == 2 else RunError)) from None
        except BaseException as e:
            if type(e).__name__ != "PanicException":
                raise
            hint = f"this is a bug in schedlab; please report it{doing}"
            raise BugError(f"the engine panicked: {e}", hint=hint) from None


def _scenario(handle: Any) -> Scenario:
    text = handle.describe()
    # The path and the text of the file can load it again, so they stay as they are.
    raw = {key: value for key, value in json.loads(text).items() if key in ("file", "text")}
    return Scenario.from_description({**documents.loads(text), **raw}, handle)


def _convert(e: Any, kind: type[SchedlabError]) -> SchedlabError:
    return kind(e.message, hint=e.hint, file=e.file, line=e.line, column=e.column, key=e.key)


@cache
def native_engine() -> Engine:
    """The compiled engine."""
    try:
        from schedlab import _engine
    except ImportError as e:
        raise ArmError(f"the simulator is not built: {e}", hint="`make compare` or `pip install .` builds it") from None
    return Engine(_engine)
