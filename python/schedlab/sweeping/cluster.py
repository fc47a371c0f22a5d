"""A sweep on a Dask cluster: chunks of runs as tasks, each run in a process of its own on the worker's machine.

A crashed run cannot take a Dask worker with it. A worker that is lost, or that Dask considers the cause of a loss, is
therefore never the fault of a run: its runs are submitted again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

from schedlab import extras
from schedlab.errors import ArmError, InputError, SchedlabError
from schedlab.sweeping.job import Answer, Job, Limits, job
from schedlab.sweeping.local import Local
from schedlab.sweeping.plan import Plan

LOCAL = "local"
CONNECT_S = 10
WORKERS_S = 60
RETRIES = 2
"""How often Dask itself repeats a task."""
MOST_LOST = 20
"""How often the runs of a chunk are submitted again before the cluster is considered broken."""
CHUNKS_PER_WORKER = 8
LARGEST_CHUNK = 32


def check(address: str) -> None:
    """Refuse what is not an address, and that Dask is absent, before anything is stored."""
    if address != LOCAL and "://" not in address:
        hint = "write tcp://HOST:8786, or `local` for a cluster on this machine"
        raise InputError(f"`{address}` is not the address of a Dask scheduler", hint=hint)
    _distributed()


class Cluster:
    """The cluster at an address, or one of its own on this machine."""

    def __init__(
        self, address: str, workers: int, limits: Limits, plan: Plan, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._address, self._workers, self._limits, self._plan, self._say = address, workers, limits, plan, say

    def answers(self, jobs: Sequence[Job]) -> Iterator[Answer]:
        distributed = _distributed()
        with ExitStack() as stack:
            client = self._client(distributed, stack)
            found = self._checked(client)
            self._say(f"{len(found)} Dask workers with this engine")
            size = max(1, min(LARGEST_CHUNK, len(jobs) // (CHUNKS_PER_WORKER * len(found))))
            yield from self._gathered(distributed, client, [jobs[i : i + size] for i in range(0, len(jobs), size)])

    def _gathered(self, distributed: Any, client: Any, chunks: Sequence[Sequence[Job]]) -> Iterator[Answer]:
        name = f"schedlab-{uuid4().hex[:8]}"
        limits = _plain(self._limits)
        waiting: dict[Any, tuple[Sequence[Job], int]] = {}

        def submit(chunk: Sequence[Job], lost: int) -> Any:
            number = uuid4().hex[:12]
            plain = [asdict(one) for one in chunk]
            future = client.submit(run_chunk, plain, limits, key=f"{name}-{number}", pure=False, retries=RETRIES)
            waiting[future] = chunk, lost
            return future

        completed = distributed.as_completed([submit(chunk, 0) for chunk in chunks])
        for future in completed:
            chunk, lost = waiting.pop(future)
            try:
                lines = future.result()
            except (distributed.scheduler.KilledWorker, distributed.CancelledError, OSError) as e:
                if client.status != "running" or lost == MOST_LOST:
                    what = "the Dask scheduler is gone" if client.status != "running" else f"workers keep dying: {e}"
                    raise ArmError(what, hint="the finished runs are kept; the same command resumes") from None
                for one in chunk:
                    completed.add(submit([one], lost + 1))
                continue
            for one, (line, failed) in zip(chunk, lines, strict=True):
                yield Answer(one.id, line, failed)

    def _client(self, distributed: Any, stack: ExitStack) -> Any:
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        address = self._address
        try:
            if address == LOCAL:
                cluster = distributed.LocalCluster(
                    n_workers=self._workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
                address = stack.enter_context(cluster)
            client = stack.enter_context(distributed.Client(address, timeout=CONNECT_S))
        except (OSError, TimeoutError, ValueError, RuntimeError) as e:  # RuntimeError: a local worker did not start
            hint = "is it running? `dask scheduler` starts one, `--dask local` needs none"
            raise ArmError(f"cannot reach the Dask scheduler at {self._address}: {e}", hint=hint) from None
        try:
            client.wait_for_workers(1, timeout=WORKERS_S)
        except TimeoutError:
            hint = "`dask worker ADDRESS` starts one"
            raise ArmError(f"the Dask scheduler at {self._address} has no worker", hint=hint) from None
        return client

    def _checked(self, client: Any) -> Mapping[str, str]:
        """The workers, after each of them was asked for its engine and every scenario of the plan."""
        firsts = {(run.point, run.variant): run for run in reversed(self._plan.distinct.values())}
        jobs = [asdict(job(self._plan, run)) for run in firsts.values()]
        try:
            found: dict[str, str] = client.run(trouble, jobs, _plain(self._limits))
        except ModuleNotFoundError as e:
            hint = "install the same version of schedlab on every worker"
            raise ArmError(f"a Dask worker cannot import schedlab: {e}", hint=hint) from None
        for worker, why in found.items():
            if why:
                raise ArmError(f"the Dask worker {worker} cannot run this sweep: {why}")
        return found


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise InputError("--dask needs Dask", hint=extras.install("dask")) from None
    return distributed


def _plain(limits: Limits) -> dict[str, Any]:
    return {**asdict(limits), "folder": str(limits.folder)}


# What runs on the workers.

_OF_THREAD = threading.local()


def run_chunk(jobs: Sequence[Mapping[str, Any]], limits: Mapping[str, Any]) -> list[tuple[bytes, bool]]:
    """The lines of some runs in their order, and whether each failed; the engine's process stays for the next chunk."""
    of = Limits(**{**limits, "folder": Path(limits["folder"])})
    kept: tuple[Limits, Local] | None = getattr(_OF_THREAD, "local", None)
    if kept is None or kept[0] != of:
        if kept is not None:
            kept[1].close()
        kept = _OF_THREAD.local = of, Local(1, of, keep=True)
    asked = [Job.of(one) for one in jobs]
    found = {answer.id: answer for answer in kept[1].answers(asked)}
    return [(found[one.id].line, found[one.id].failed) for one in asked]


def trouble(jobs: Sequence[Mapping[str, Any]], limits: Mapping[str, Any]) -> str:
    """Why this worker cannot execute such runs; empty if it can."""
    import os

    from schedlab.engine import native_engine
    from schedlab.sweeping.worker import Runs

    before = os.getcwd()
    try:
        engine = native_engine()
        own, wanted = engine.build(), str(limits["build"])
        if own != wanted:
            return f"it has the engine {engine.version}, build {own[:12]}; the sweep was planned with {wanted[:12]}"
        if os.path.isdir(limits["folder"]):
            os.chdir(limits["folder"])
        runs = Runs(engine, wanted)
        return next((why for why in (runs.why_not(Job.of(one)) for one in jobs) if why), "")
    except SchedlabError as e:
        return e.message
    finally:
        os.chdir(before)
