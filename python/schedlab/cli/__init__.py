"""The `schedlab` command: parse, dispatch, and turn every failure into one message and one exit code."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedlab.cli.console import Console
    from schedlab.cli.options import Options
    from schedlab.engine import Engine

EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
STOPS = (signal.SIGTERM, signal.SIGHUP)


def console_script() -> int:
    """`main` as the entry point of the command, which Ctrl-C may also interrupt while `main` imports its modules.

    At the end of a process the search for garbage takes longer than a short run; after `gc.freeze` there is none.
    """
    try:
        code = main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = EXIT_INTERRUPTED
    gc.freeze()
    return code


def main(argv: Sequence[str] | None = None, engine: Engine | None = None) -> int:
    """Run one command and return its exit code."""
    from schedlab.cli.console import Console
    from schedlab.cli.options import Options
    from schedlab.cli.parser import build_parser
    from schedlab.errors import RunError, SchedlabError

    console = Console()
    try:
        words = sys.argv[1:] if argv is None else argv
        options = build_parser(next(iter(words), "")).parse_args(words, namespace=Options())
        console.configure(options)
        with _stops_like_ctrl_c():
            code = _command(options, console, engine)
        console.flush()
        return code
    except SystemExit as e:  # argparse: help, version, usage
        return e.code if isinstance(e.code, int) else 2
    except SchedlabError as e:
        console.error(e)
        return e.exit_code
    except KeyboardInterrupt:
        console.say("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()
        return EXIT_PIPE
    except OSError as e:
        return _of_system(e, console)
    except MemoryError:
        console.error(SchedlabError("out of memory", hint="use fewer --jobs"))
        return RunError.exit_code
    except Exception as e:
        return _bug(e, console)


def _of_system(e: OSError, console: Console) -> int:
    """A full disk where nothing more is known of it, such as that of temporary files, is the computer's fault."""
    from schedlab.errors import OutputError, reason

    temporary = "temporary directory" in str(e)
    if e.errno not in FULL and not temporary:
        return _bug(e, console)
    what = "no directory for temporary files can be written" if temporary else f"cannot write a file: {reason(e)}"
    error = OutputError(what, hint="free some space, or set TMPDIR to a directory on another disk")
    console.error(error)
    return error.exit_code


def _bug(e: Exception, console: Console) -> int:
    from schedlab.errors import BugError

    if os.environ.get("SCHEDLAB_TRACEBACK"):
        raise e
    text = f"schedlab itself failed: {type(e).__name__}: {e}"
    console.error(BugError(text, hint="please report this, with the output under SCHEDLAB_TRACEBACK=1"))
    return BugError.exit_code


def _command(options: Options, console: Console, engine: Engine | None) -> int:
    from importlib import import_module

    from schedlab.cli.paths import check_paths

    check_paths(options)
    if getattr(options, "settings", None):
        from schedlab.cli import given_settings

        given_settings.apply(options, console, engine)
    module = import_module(f"schedlab.cli.{options.command}")
    return int(module.execute(options, console, engine))


@contextmanager
def _stops_like_ctrl_c() -> Iterator[None]:
    """CI and containers stop a command with SIGTERM, a terminal that closes with SIGHUP; it keeps what finished."""
    changed = []
    for number in STOPS:
        try:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)
                changed.append(number)
        except ValueError:  # not the main thread, which cannot set signal handlers
            pass
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _drop_stdout() -> None:
    """The reader has closed the pipe; buffered output must not raise again when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
