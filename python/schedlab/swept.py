"""A sweep as a call: `schedlab.sweep(file)` runs what is left of it, and gives the judgements as plain data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from schedlab import fragment
from schedlab.api import default_jobs, provenance
from schedlab.comparison import dataframe
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError
from schedlab.sweeping import TIME_LIMIT_S
from schedlab.sweeping.judged import Judged, judged

if TYPE_CHECKING:
    import pandas

    from schedlab.sweeping.axes import Value
    from schedlab.sweeping.plan import Planned

COLUMNS = ("median_a", "median_b", "change", "low", "high", "verdict")


@dataclass(frozen=True, slots=True, repr=False)
class Swept:
    """A sweep with its judgements: `str()` is the text of the command."""

    judged: Judged

    @property
    def name(self) -> str:
        """The name of the sweep."""
        return str(self.judged.experiment.manifest["sweep"]["name"])

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(axis.name for axis in self.judged.experiment.axes)

    @property
    def document(self) -> Mapping[str, Any]:
        """What `schedlab sweep --json` prints: cells, flips, growth and failures (docs/results.md)."""
        from schedlab.render.sweep import document

        return document(self.judged)

    def table(self) -> list[dict[str, Any]]:
        """One plain row per metric, pair of variants and point: the levels of the axes, then the judgement.

        `change`, `low` and `high` are in percent if `percent` is true, else in the metric's unit.
        """
        rows = []
        for map in self.document["maps"]:
            head = {key: map[key] for key in ("metric", "unit", "better", "a", "b")}
            for cell in map["cells"]:
                values = {key: value for key, value in cell.items() if key != "point"}
                rows.append({**cell["point"], **head, **values})
        return rows

    def runs_table(self) -> list[dict[str, Any]]:
        """One plain row per planned run that ended: levels, variant, seed, status, digest and every metric."""
        from schedlab.sweeping.export import table

        return table(self.judged.experiment)

    def to_dataframe(self) -> pandas.DataFrame:
        """`table` as a DataFrame; needs pandas (the extra `pandas`)."""
        return dataframe(self.table(), ("change", "low", "high", "p"))

    def runs_dataframe(self) -> pandas.DataFrame:
        """`runs_table` as a DataFrame."""
        from schedlab.sweeping.export import metric_names

        return dataframe(self.runs_table(), metric_names(self.judged.experiment))

    def __str__(self) -> str:
        from schedlab.render.sweep import text

        return text(self.judged)

    def __repr__(self) -> str:
        """One line: the cells would be pages."""
        experiment = self.judged.experiment
        sizes = [f"{len(experiment.points)} points", f"{len(self.judged.maps)} maps"]
        sizes += [f"{len(experiment.failures)} failed runs"] if experiment.failures else []
        sizes += [f"{experiment.missing} runs missing"] if experiment.missing else []
        return f"<Swept {self.name}: {', '.join(self.axes)}; simulated, {', '.join(sizes)}>"

    def _repr_html_(self) -> str:
        keys = (*self.axes, "metric", "unit", "a", "b", *COLUMNS)
        return fragment.table(repr(self), keys, [[row[key] for key in keys] for row in self.table()])


def sweep(
    file: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    short: bool = False,
    jobs: int | None = None,
    overrides: Mapping[str, Value] | None = None,
    shard: tuple[int, int] | None = None,
    dask: str | None = None,
    retry: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
    memory_mb: int | None = None,
    on_run: Callable[[str, str, int, bool], None] | None = None,
    engine: Engine | None = None,
) -> Swept:
    """Run a sweep file and judge every point.

    `out` is the directory that keeps the runs; the same call resumes there, and without it nothing is kept. `overrides`
    replaces keys of the scenario at every point, as `set` in the file does; a key of an axis cannot be replaced.
    `on_run` gets the labels of the point, the variant, the seed and whether the run failed, for every run that ended.
    The other arguments are those of `schedlab sweep`. A failed run is a result (`document["failures"]`). Ctrl-C raises
    KeyboardInterrupt, and the runs that finished are in `out`.
    """
    from schedlab.sweeping import definition, store
    from schedlab.sweeping.plan import cpus, metrics, plan
    from schedlab.sweeping.running import Running, executor

    engine = engine or native_engine()
    own = dict(overrides or {})
    if dask:
        from schedlab.sweeping import cluster

        cluster.check(dask)
    if shard and not 1 <= shard[0] <= shard[1]:
        raise InputError(f"there is no shard {shard[0]} of {shard[1]}", hint="(1, 2) is the first of two")
    found = definition.read(Path(file), lambda path, sets: cpus(engine, path, {**sets, **own}), short=short, also=own)
    planned = plan(engine, found)
    metrics(planned)

    def ended(run: Planned, failed: bool) -> None:
        if on_run:
            on_run(found.points[run.point].label, run.variant, run.seed, failed)

    with TemporaryDirectory(prefix="schedlab-") as scratch:
        folder = Path(scratch) / "sweep" if out is None else Path(out)
        with Running(planned, folder, provenance(), part=shard, retry=retry) as running:
            to = executor(planned, jobs or default_jobs(), dask=dask, time_limit_s=time_limit_s, memory_mb=memory_mb)
            running.run(to, ended)
        return Swept(judged(store.read(folder)))
