"""Every way schedlab can fail, and the one place that turns a failure into text."""

from __future__ import annotations

import errno


class SchedlabError(Exception):
    """A failure that the user can act on: what is wrong, where, and what would help."""

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.file = file
        self.line = line
        self.column = column
        self.key = key

    def __str__(self) -> str:
        """What a traceback shows: the message, the place and the hint."""
        return render(self).removeprefix("error: ")

    def where(self) -> str | None:
        """`file:line:column`, as far as it is known."""
        if self.file is None:
            return None
        parts = [self.file, *(str(n) for n in (self.line, self.column) if n)]
        return ":".join(parts)


class InputError(SchedlabError):
    """The request is invalid: wrong usage, unknown names, stored results that cannot be read."""


class ScenarioError(SchedlabError):
    """The scenario file, or a file it names, is not valid."""


class RunError(SchedlabError):
    """A run started and did not end as it should: deadlock, livelock, a violated check."""

    exit_code = 3


class BugError(RunError):
    """schedlab itself failed, such as by a panic of the engine."""

    exit_code = 70
    """EX_SOFTWARE of sysexits.h; no other failure has it."""


class OutputError(SchedlabError):
    """A result could not be written: full disk, no permission."""

    exit_code = 3


class ArmError(SchedlabError):
    """The arm cannot run here."""

    exit_code = 4


class UnsafeError(SchedlabError):
    """Another user could have written what schedlab was about to act on."""

    exit_code = 4


class Cancelled(SchedlabError):
    """The run was stopped from outside."""

    exit_code = 130


def render(error: SchedlabError, *, colour: bool = False) -> str:
    """The text for the user: the message, the place and the hint, one line each."""
    red, blue, off = ("\x1b[1;31m", "\x1b[1;34m", "\x1b[0m") if colour else ("", "", "")
    lines = [f"{red}error{off}: {error.message}"]
    if place := error.where():
        lines.append(f"  {blue}-->{off} {place}")
    if error.hint:
        lines.append(f"  {blue}hint{off}: {error.hint}")
    return "\n".join(lines)


def reason(error: OSError) -> str:
    """The operating system's message for the failure."""
    return error.strerror or type(error).__name__


REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space of your quota",
    errno.EFBIG: "ulimit -f limits the size of a file",
    errno.EACCES: "this needs the permission to write there",
    errno.EPERM: "this needs the permission to write there",
    errno.EROFS: "that file system is mounted read-only",
    errno.EISDIR: "it is a directory; name a file",
    errno.ENOTDIR: "a part of the path is a file; choose another path",
    errno.EEXIST: "a file has that name; choose another path",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def not_written(what: str, error: OSError, *, then: str | None = None, file: str | None = None) -> OutputError:
    """The error for something that the operating system did not write; `then` is what to do once the cause is gone."""
    hint = "; ".join(words for words in (REMEDIES.get(error.errno or 0), then) if words)
    return OutputError(f"{what}: {reason(error)}", hint=hint or None, file=file)
