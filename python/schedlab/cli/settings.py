"""`schedlab settings`: pasted settings of a kernel as keys of a variant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.cli.console import Console
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.errors import InputError, reason

if TYPE_CHECKING:
    from schedlab.imported import Imported

READS = (
    "give the output of `cat /sys/kernel/debug/sched/features`, `grep . /sys/kernel/debug/sched/*` or `sysctl -a`, or "
    "the .config of a kernel"
)


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 0, also if some settings could not be taken over: they are comments of the output."""
    from schedlab.imported import imported, release, toml

    engine = engine or native_engine()
    file = Path(str(options.source))
    text = read(file)
    named = release(text)
    kernel = str(options.kernel or (named and engine.row_of(named)) or "")
    if not kernel:
        what = f"kernel {named} has no row" if named else "the file names no kernel"
        raise InputError(what, file=str(file), hint="name a row with --kernel, such as 6.12")
    features, knobs = (engine.listing(kind, kernel) for kind in ("features", "knobs"))
    found = imported(text, kernel, features, knobs)
    check(found, file)
    console.result("\n".join(toml(found, str(file))))
    return 0


def read(file: Path) -> str:
    """The text of a file with settings."""
    try:
        return file.read_text(errors="replace")
    except OSError as e:
        raise InputError(f"cannot read the settings: {reason(e)}", file=str(file), hint=READS) from None


def check(found: Imported, file: Path) -> None:
    """Raise an error if the file has no setting of the scheduler."""
    if not found.read and not found.left_out:
        raise InputError("it contains no setting of the scheduler", file=str(file), hint=READS)
