"""Results go to stdout and everything else to stderr; colour and progress only on a terminal.

Everything that is shown passes through here, so text of any origin is made safe to show here (`schedlab.plain`).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TextIO

from schedlab import files, plain
from schedlab.cli.parser import Options
from schedlab.errors import OutputError, SchedlabError, reason, render


class Console:
    """The two streams of a command."""

    def __init__(self) -> None:
        self.quiet = False
        self.verbose = False
        self._progress = True

    def configure(self, options: Options) -> None:
        self.quiet, self.verbose, self._progress = options.quiet, options.verbose, options.progress

    def result(self, text: str) -> None:
        """A result, to stdout."""
        try:
            sys.stdout.write(plain.lines(text, colour=colours(sys.stdout)) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as e:
            _abandon(sys.stdout)
            raise OutputError(f"cannot write to stdout: {reason(e)}") from None

    def flush(self) -> None:
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """A remark, to stderr."""
        if not self.quiet:
            _stderr(plain.lines(text))

    def detail(self, text: str) -> None:
        """A remark for --verbose."""
        if self.verbose and not self.quiet:
            _stderr(plain.lines(text))

    def error(self, error: SchedlabError) -> None:
        colour = colours(sys.stderr)
        _stderr(plain.lines(render(error, colour=colour), colour=colour))

    def progress(self, total: int) -> Progress:
        """Progress over `total` runs; silent if it is switched off."""
        wanted = self._progress and not self.quiet and not self.verbose
        live = sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
        return Progress(total, live) if wanted else Progress(0, False)


class Progress:
    """One line that is redrawn on a terminal; elsewhere a line at every tenth of the way."""

    def __init__(self, total: int, live: bool) -> None:
        self._total, self._live, self._done, self._shown = total, live, 0, 0
        self._began = time.monotonic()

    def step(self, text: str) -> None:
        """One more run has ended."""
        self._done += 1
        if self._live and self._total:
            left = (time.monotonic() - self._began) * (self._total - self._done) / self._done
            _write(f"\r\x1b[K[{self._done}/{self._total}] {plain.escaped(text)}, about {left:.0f} s left")
        elif self._total and self._done * 10 // self._total > self._shown:
            self._shown = self._done * 10 // self._total
            _stderr(f"{self._done}/{self._total} runs")

    def clear(self) -> None:
        """Leave the line to others."""
        if self._live and self._total:
            _write("\r\x1b[K")


def colours(stream: TextIO) -> bool:
    """Whether this stream gets colour: NO_COLOR and dumb terminals say no, FORCE_COLOR says yes."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def write_file(path: Path, text: str) -> None:
    """Write a whole file, or leave what was there: a full disk must not leave half a page."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, text)
    except OSError as e:
        raise OutputError(f"cannot write {path}: {reason(e)}") from None


def _stderr(text: str) -> None:
    _write(text + "\n")


def _write(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass  # there is no other place to report it


def _abandon(stream: TextIO) -> None:
    """Keep Python from flushing a stream again that cannot be written."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        pass
