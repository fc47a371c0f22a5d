"""Worker processes on this machine: one run in each at a time, with limits; one that crashes or hangs is replaced.

A worker with short runs has the next few in its pipe, so that it need not wait until this process gets a CPU.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO

from schedlab.children import die_with_parent
from schedlab.errors import ArmError
from schedlab.sweeping.job import UNFIT, Answer, Job, Limits, failed

TRIES = 2
"""A run whose worker was killed from outside may not be the cause, so it is tried again."""
MOST_LOST = 20
"""How many workers may be killed from outside before they have begun a run."""
TAIL = 8000
"""Bytes of what a worker wrote last to stderr, among which the reason is looked for."""
ERROR_WORDS = ("memory allocation", "panicked at", "MemoryError")
"""Of several lines, the first with one of these says why; otherwise the last one does."""
CHUNK = 1 << 20
SHORT_S = 0.05
"""No run is queued behind one that takes longer than this: another worker may be free before it."""
AHEAD = 4
"""The most runs that a worker has at a time, including the one in progress."""
PIPED = 1 << 15
"""Bytes of jobs in a worker's pipe, which holds twice as much: writing to it must never wait."""
_FAILED = re.compile(rb'\{"id":"[0-9a-f]{32}","status":"failed"')


class Local:
    """Workers are started as they are needed and end with `answers`, however that ends."""

    def __init__(self, workers: int, limits: Limits, *, keep: bool = False) -> None:
        """With `keep`, idle workers wait for the next jobs until `close`."""
        self._count, self._limits, self._keep = workers, limits, keep
        self._idle: list[_Worker] = []
        self._lost = 0

    def close(self) -> None:
        """End the workers that were kept."""
        while self._idle:
            self._idle.pop().kill()

    def answers(self, jobs: Sequence[Job]) -> Iterator[Answer]:
        todo = deque(jobs)
        tries: dict[str, int] = {}
        workers = [*self._idle, *(_Worker(self._limits) for _ in range(min(self._count, len(todo)) - len(self._idle)))]
        self._idle.clear()
        poll = selectors.DefaultSelector()
        try:
            for worker in workers:
                poll.register(worker.answers, selectors.EVENT_READ, worker)
            while todo or any(worker.job or not worker.ready for worker in workers):
                for worker in workers:
                    worker.feed(todo)
                for key, _ in poll.select(self._patience(workers)):
                    worker = key.data
                    if not worker.read():
                        poll.unregister(worker.answers)
                        workers.remove(worker)
                        yield from self._ended(worker, todo, tries)
                    answers = worker.taken()
                    if worker in workers:
                        worker.feed(todo)  # it must not wait while the caller stores the answers
                    yield from answers
                for worker in workers:
                    if worker.overdue(self._limits.seconds):
                        worker.stop()
                for worker in [w for w in workers if w.ready and not w.job and not todo]:
                    poll.unregister(worker.answers)
                    workers.remove(worker)
                    self._spare(worker)
                while todo and len(workers) < self._count:
                    workers.append(_Worker(self._limits))
                    poll.register(workers[-1].answers, selectors.EVENT_READ, workers[-1])
        finally:
            poll.close()
            for worker in workers:
                worker.kill()

    def _spare(self, worker: _Worker) -> None:
        """There is nothing left for it to do."""
        if self._keep:
            self._idle.append(worker)
        else:
            worker.close()

    def _patience(self, workers: Sequence[_Worker]) -> float:
        """Seconds until the next run exceeds its time limit."""
        now = time.monotonic()
        ends = [w.began + self._limits.seconds - now for w in workers if w.job and not w.late]
        return max(0.0, min(ends, default=60.0))

    def _ended(self, worker: _Worker, todo: deque[Job], tries: dict[str, int]) -> Iterator[Answer]:
        """The outcome of the run of a worker that is gone."""
        code, said = worker.reap()
        job, *behind = worker.jobs or [None]
        todo.extendleft(one for one in reversed(behind) if one)
        if job is None:
            self._lost += 1
            if worker.ready or (code < 0 and self._lost < MOST_LOST):
                return  # another one takes its place if there is work
            raise ArmError(f"a worker process could not start: {said or f'exit code {code}'}")
        if code == UNFIT:
            raise ArmError(f"a worker cannot execute the runs of this sweep: {said}")
        elapsed = time.monotonic() - worker.began
        if worker.late:
            text = f"no end within {self._limits.seconds:g} s"
            yield failed(job, text, "a larger --time-limit allows it more", elapsed)
            return
        tries[job.id] = tries.get(job.id, 0) + 1
        if code < 0 and tries[job.id] < TRIES:
            todo.appendleft(job)
            return
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        hint = f"it may use {self._limits.memory_mb} MB; a larger --memory allows it more" if "memory" in said else None
        yield failed(job, f"the worker was {how}{': ' if said else ''}{said}", hint, elapsed)


class _Worker:
    """One worker process and its runs, of which the first is in progress."""

    def __init__(self, limits: Limits) -> None:
        self.jobs: deque[Job] = deque()
        self.began = 0.0
        self._sizes: deque[int] = deque()
        self._quick = False
        self.ready = self.late = False
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the process is reaped
        self._buffer = bytearray()
        self._done: deque[bytes] = deque()
        command = [sys.executable, "-m", "schedlab.sweeping.worker", str(limits.memory_mb), limits.build]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            cwd=limits.folder if limits.folder.is_dir() else None,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in map(os.path.abspath, sys.path))},
            start_new_session=True,  # Ctrl-C is the parent's
            preexec_fn=die_with_parent(),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._jobs, self.answers = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def job(self) -> Job | None:
        """The run in progress."""
        return self.jobs[0] if self.jobs else None

    def feed(self, todo: deque[Job]) -> None:
        """Give it a run if it has none, and the next ones if its runs are short."""
        if not self.ready or self.late:
            return
        while todo and (not self.jobs or (self._quick and len(self.jobs) < AHEAD and self._fits(todo[0]))):
            self._give(todo.popleft())

    def _fits(self, job: Job) -> bool:
        return sum(self._sizes) + len(job.line()) <= PIPED

    def _give(self, job: Job) -> None:
        line = job.line()
        if not self.jobs:
            self.began = time.monotonic()
        self.jobs.append(job)
        self._sizes.append(len(line))
        with suppress(BrokenPipeError):  # its end is seen at the other pipe
            self._jobs.write(line)
            self._jobs.flush()

    def read(self) -> bool:
        """Take what it wrote; False if it is gone."""
        data = os.read(self.answers.fileno(), CHUNK)
        self._buffer += data
        *lines, rest = bytes(self._buffer).split(b"\n") if b"\n" in data else [bytes(self._buffer)]
        if lines:
            self._buffer = bytearray(rest)
        if lines and not self.ready:
            self.ready = True
            del lines[0]
        self._done.extend(lines)
        return bool(data)

    def taken(self) -> list[Answer]:
        """The answers that are complete."""
        found = []
        while self._done and self.jobs:
            line, job = self._done.popleft(), self.jobs.popleft()
            self._sizes.popleft()
            found.append(Answer(job.id, line + b"\n", bool(_FAILED.match(line))))
        if found:
            now = time.monotonic()
            self._quick = (now - self.began) / len(found) < SHORT_S
            self.began = now
        return found

    def overdue(self, seconds: float) -> bool:
        return bool(self.jobs) and not self.late and time.monotonic() - self.began >= seconds

    def stop(self) -> None:
        """The run has exceeded its time limit."""
        self.late = True
        self._process.kill()

    def close(self) -> None:
        """Let it end: there is nothing left to do."""
        self._jobs.close()
        self.reap()

    def kill(self) -> None:
        self._process.kill()
        with suppress(OSError):
            self._jobs.close()
        self.reap()

    def reap(self) -> tuple[int, str]:
        """Wait for its end and return its exit code and the end of its stderr."""
        with suppress(OSError):
            self._jobs.close()
        code = self._process.wait()
        self.answers.close()
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, size - TAIL))
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        self._said.close()
        return code, next(
            (line for line in lines if any(word in line for word in ERROR_WORDS)), lines[-1] if lines else ""
        )
