"""Results go to stdout and everything else to stderr; colour and progress only on a terminal.

Everything that is shown passes through here, so text of any origin is made safe to show here (`schedlab.plain`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from schedlab import files, plain
from schedlab.cli.options import Options
from schedlab.cli.progress import Progress, nothing_to_note, nothing_under_way, write
from schedlab.errors import SchedlabError, not_written, render

if TYPE_CHECKING:
    from schedlab.engine import UnderWay


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
        self.page(plain.lines(text, colour=colours(sys.stdout)))

    def text(self, text: str) -> None:
        """A result as text: long lines are wrapped."""
        from schedlab.render.grid import fold

        self.result(fold(text))

    def page(self, text: str) -> None:
        """A result whose text was made safe when it was written, such as HTML: to stdout as it is."""
        try:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as e:
            _abandon(sys.stdout)
            raise not_written("cannot write to stdout", e) from None

    def flush(self) -> None:
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """A remark, to stderr."""
        if not self.quiet:
            write(plain.lines(text) + "\n")

    def reason(self, text: str) -> None:
        """Why a command ends with a code other than 0, to stderr, also with --quiet."""
        write(plain.lines(text) + "\n")

    def detail(self, text: str) -> None:
        """A remark for --verbose."""
        if self.verbose and not self.quiet:
            write(plain.lines(text) + "\n")

    def error(self, error: SchedlabError) -> None:
        colour = colours(sys.stderr)
        write(plain.lines(render(error, colour=colour), colour=colour) + "\n")

    def progress(
        self,
        total: int,
        under_way: Callable[[], Sequence[UnderWay]] = nothing_under_way,
        note: Callable[[], str] = nothing_to_note,
        what: str = "runs",
        quiet_s: float = 0.0,
        shorter: str = "",
    ) -> Progress:
        """Progress over `total` runs, with a note that is computed whenever it is shown; silent if switched off.

        Outside a terminal nothing is said in the first `quiet_s` seconds. What makes long work `shorter` is said as
        soon as it is known to be long.
        """
        wanted = self._progress and not self.quiet and not self.verbose
        live = sys.stderr.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"
        return Progress(total, live, under_way, note, what, quiet_s, shorter) if wanted else Progress(0, False)


def colours(stream: TextIO) -> bool:
    """Whether this stream gets colour: not with NO_COLOR or on a dumb terminal, always with FORCE_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def write_file(path: Path, text: str) -> None:
    """Write a whole file, or keep the old one: a full disk must not leave half a page."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.replace(path, text)
    except OSError as e:
        raise not_written(f"cannot write {path}", e) from None


def _abandon(stream: TextIO) -> None:
    """Keep Python from flushing again a stream that cannot be written."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        pass
