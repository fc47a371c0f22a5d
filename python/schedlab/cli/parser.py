"""The command line: every command and flag with its help. Imports nothing heavy, so that `--help` is fast."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from schedlab.cli import values
from schedlab.cli.flags import compiled, extensible, real_kernels, studies, sweeps, tuning
from schedlab.cli.terminal import terminal_columns
from schedlab.render.grid import fold
from schedlab.verdicts import GATES

Flags = Callable[[argparse.ArgumentParser], None]

STYLES = ("table", "details", "markdown", "csv", "mmtests", "benchstat", "ministat", "perf-stat")
KINDS = ("machines", "kernels", "distributions", "features", "workloads", "knobs", "metrics", "studies")

EXIT_CODES = """\
exit codes:
  0    success
  1    a gate of --fail-on failed, no winner of tune was confirmed, a kernel
       cannot run a scheduler of scx check, or one fails under scx stress
  2    bad input or usage
  3    some runs failed or could not be stored; the others are complete
  4    the arm cannot run here
  70   schedlab itself failed; please report it
  130  interrupted (Ctrl-C, SIGTERM, SIGHUP); finished runs are stored
"""


class Parser(argparse.ArgumentParser):
    """argparse with schedlab's error format and suggestions for misspelt names."""

    flags: Flags | None = None
    """Adds the flags of a command on demand: adding those of all commands takes longer than a short run."""

    def _complete(self) -> None:
        if self.flags:
            flags, self.flags = self.flags, None
            flags(self)
            _common(self)

    def _get_formatter(self) -> argparse.HelpFormatter:
        """argparse makes one for every argument that is added, and each would look for the size of the terminal."""
        return self.formatter_class(prog=self.prog, width=terminal_columns() - 2)  # type: ignore[call-arg]

    def format_help(self) -> str:
        self._complete()
        return super().format_help()

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
        """Unknown arguments are refused here, where the command's own flags are known, not by the parser above."""
        self._complete()
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        lines = [f"error: {message}"]
        if near := self._near(message):
            lines.append(f"  hint: did you mean `{near}`?")
        if flag := re.fullmatch(r"argument (?:.*/)?(--[\w-]+): expected one argument", message):
            lines.append(f"  hint: a value that begins with `-` is written as {flag[1]}=VALUE")
        listed = "arguments" if " " in self.prog else "commands"
        lines.append(f"  hint: `{self.prog} --help` lists the {listed} and flags")
        print("\n".join(lines), file=sys.stderr)
        raise SystemExit(2)

    def _near(self, message: str) -> str | None:
        from schedlab.spelling import nearest

        wrong, known = list[str](), list[str]()
        if "unrecognized arguments: " in message:
            wrong = message.rpartition("unrecognized arguments: ")[2].split()
            known = [s for action in self._actions for s in action.option_strings]
        if "invalid choice: " in message:
            wrong = [message.partition("invalid choice: ")[2].split("'")[1]]
            known = [str(c) for action in self._actions for c in action.choices or ()]
        return next((near for word in wrong if (near := nearest(word.partition("=")[0], known))), None)


def build_parser(command: str = "") -> Parser:
    """The whole grammar; for a command line that begins with a command, the part that it needs: a fifth of the time."""
    parser = Parser(
        prog="schedlab",
        description="An A/B laboratory for the Linux CPU scheduler.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    # With `prog`, argparse formats no usage here, for which it would look for the size of a terminal.
    commands = parser.add_subparsers(prog=parser.prog, dest="command", metavar="COMMAND", required=True)
    for name in [command] if command in COMMANDS else COMMANDS:
        summary, flags = COMMANDS[name]
        _command(commands, name, summary).flags = flags
    return parser


def _compare(p: argparse.ArgumentParser) -> None:
    _scenario(p)
    _arm(p)
    p.add_argument(
        "--seeds",
        dest="seeds_or_auto",
        type=values.seeds_or_auto,
        metavar="N|LIST|auto[:N]",
        help="number of seeds or a list: 20 or 1,2,7; auto adds seeds until the verdicts are settled, at most N",
    )
    p.add_argument("--jobs", type=values.jobs, metavar="N", help="runs at the same time (default: one per CPU)")
    p.add_argument(
        "--noise-floor",
        action=argparse.BooleanOptionalAction,
        help="run the first variant again with other seeds to measure the noise (default: only on real kernels)",
    )
    p.add_argument(
        "--robust",
        nargs="?",
        type=values.draws,
        const=20,
        default=0,
        metavar="N",
        help="repeat the comparison N times with other costs and orders of simultaneous events (default: 20), "
        "and with the other grouping of the tasks",
    )
    _outputs(p)
    p.add_argument("--trace", type=Path, metavar="DIR", help="write the trace of every run to DIR")
    p.add_argument("--out", type=Path, metavar="DIR", help="store the runs in DIR (default: schedlab-results/...)")
    p.add_argument("--resume", action="store_true", help="resume the interrupted comparison in --out")


def _run(p: argparse.ArgumentParser) -> None:
    _scenario(p)
    _arm(p)
    p.add_argument("--variant", metavar="NAME", help="the variant (default: the only one)")
    p.add_argument("--seed", type=values.seed, metavar="N", help="the seed (default: the scenario's first)")
    p.add_argument("--trace", type=Path, metavar="FILE", help="write the trace; the suffix selects the format")
    p.add_argument("--check-determinism", action="store_true", help="run twice and report the first divergent event")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write the run as JSON; - is stdout")


def _explain(p: argparse.ArgumentParser) -> None:
    _scenario(p)
    p.add_argument("variants", nargs="*", metavar="A B", help="two variants (default: the scenario's only two)")
    p.add_argument("--seed", type=values.seed, metavar="N", help="the seed (default: the scenario's first)")
    p.add_argument("--metric", metavar="NAME", help="the decisions that this metric's slow samples depend on")
    p.add_argument("--variant", metavar="NAME", help="with --task: the variant (default: the only one)")
    p.add_argument("--task", metavar="TASK", help="explain why this task (pid, workload or program) waits")
    p.add_argument("--at", type=values.time, metavar="TIME", help="with --task: the time, such as 12.5ms or 800us")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write the answer as JSON; - is stdout")


def _ablate(p: argparse.ArgumentParser) -> None:
    _scenario(p)
    p.add_argument("variants", nargs="*", metavar="A B", help="two variants (default: the scenario's only two)")
    p.add_argument("--metric", metavar="NAME", help="the metric (default: the scenario's first)")
    p.add_argument("--seeds", type=values.seeds, metavar="N|LIST", help="number of seeds or a list: 20 or 1,2,7")
    p.add_argument("--jobs", type=values.jobs, metavar="N", help="runs at the same time (default: one per CPU)")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write all numbers as JSON; - is stdout")


def _list(p: argparse.ArgumentParser) -> None:
    p.add_argument("kind", choices=KINDS, metavar="KIND", help=f"what to list: {', '.join(KINDS)}")
    p.add_argument("name", nargs="?", metavar="NAME", help="show all details of one of them")
    p.add_argument("--kernel", metavar="VERSION", help="only features and knobs of this kernel")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write the list as JSON; - is stdout")


def _report(p: argparse.ArgumentParser) -> None:
    p.add_argument("results", nargs="+", type=Path, metavar="RESULT", help="a directory in which `compare` stored runs")
    _outputs(p)


def _replay(p: argparse.ArgumentParser) -> None:
    p.add_argument("source", type=Path, metavar="TRACE", help="a trace in any format that `convert` reads")
    rows = p.add_mutually_exclusive_group()
    rows.add_argument("--kernel", metavar="VERSION", help="the row (default: that of the recorded kernel)")
    rows.add_argument("--matrix", action="store_true", help="replay under every row, one line each")
    p.add_argument(
        "--first", type=values.natural, default=1, metavar="N", help="show the first N disagreements (default: 1)"
    )
    p.add_argument("--state", action="store_true", help="show the first difference from the probed state")
    p.add_argument("--explain", type=values.moment, metavar="TASK@TIME", help="explain why a task waits at that time")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write all counts as JSON; - is stdout")
    p.set_defaults(html=None)


def _settings(p: argparse.ArgumentParser) -> None:
    p.add_argument("source", type=Path, metavar="FILE", help="a features dump, sysctl lines or a kernel's .config")
    p.add_argument("--kernel", metavar="VERSION", help="the kernel (default: that which a .config names)")
    p.set_defaults(json=None, html=None)


def _waits(p: argparse.ArgumentParser) -> None:
    p.add_argument("source", type=Path, metavar="TRACE", help="a trace in any format that `convert` reads")
    p.add_argument("task", nargs="?", metavar="TASK", help="only the waits of this task, by pid or name")
    p.add_argument(
        "--first", type=values.natural, default=10, metavar="N", help="show the N longest waits (default: 10)"
    )
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write all of them as JSON; - is stdout")
    p.set_defaults(html=None)


def _whatif(p: argparse.ArgumentParser) -> None:
    p.add_argument("source", type=Path, metavar="TRACE", help="a trace in any format that `convert` reads")
    p.add_argument(
        "--kernel", action="append", dest="kernels", default=[], metavar="VERSION",
        help="predict for this kernel, as in a variant; can be repeated (default: the recorded one)",
    )  # fmt: skip
    p.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE",
        help="predict for other settings, as `compare --set` names them: knobs.base_slice=3ms; can be repeated",
    )  # fmt: skip
    p.add_argument("--cpus", type=values.positive, metavar="N", help="predict for so many CPUs under one cache")
    p.add_argument(
        "--recorded-on", metavar="VERSION", help="the row of the recorded kernel (default: the trace names it)"
    )
    p.add_argument(
        "--machine", metavar="NAME|FILE", help="simulate this machine; its costs are added to the recorded work"
    )
    p.add_argument("--seeds", type=values.seeds, metavar="N|LIST", help="number of seeds or a list (default: 10)")
    p.add_argument("--jobs", type=values.jobs, metavar="N", help="runs at the same time (default: one per CPU)")
    p.add_argument(
        "--all", dest="every", action="store_true", help="show every pool, also those that do hardly anything"
    )
    p.add_argument("--out", type=Path, metavar="FILE", help="write the extracted programs as a scenario")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write all numbers as JSON; - is stdout")
    p.set_defaults(html=None)


def _identify(p: argparse.ArgumentParser) -> None:
    p.add_argument("source", metavar="TRACE|KERNEL", help="a trace, or a kernel to record first, as `record` names it")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write every row's counts as JSON; - is stdout")
    p.set_defaults(html=None)


def _changelog(p: argparse.ArgumentParser) -> None:
    p.add_argument("before", metavar="A", help="a kernel row, such as 6.12.107")
    p.add_argument("after", metavar="B", help="the row to compare it with, such as 7.0")
    p.add_argument(
        "--scenarios",
        dest="shown_in",
        type=Path,
        default=Path("scenarios"),
        metavar="FOLDER",
        help="where to look for scenarios that show a change (default: scenarios)",
    )
    p.add_argument("--markdown", action="store_true", help="print a page of the documentation site")
    p.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="write the same as JSON; - is stdout, with nothing else"
    )


def _view(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "sources", nargs="+", type=Path, metavar="TRACE|RESULT", help="traces that `convert` reads, or a stored result"
    )
    p.add_argument("--seed", type=values.seed, metavar="N", help="the seed of a result (default: a typical one)")
    p.add_argument(
        "--port", type=values.port, default=0, metavar="N", help="listen on this port (default: any free one)"
    )


def _convert(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "source",
        type=Path,
        metavar="IN",
        help="ftrace, trace-cmd report or perf script text (also gzipped), trace.dat, perf.data, Perfetto",
    )
    p.add_argument(
        "target",
        type=Path,
        metavar="OUT",
        help="the suffix selects the format: .ftrace .txt (.gz), .dat, .data, .pftrace",
    )
    p.add_argument("--buffer", metavar="NAME", help="the ring buffer to read, of several; top is the unnamed one")


def _command(commands: argparse._SubParsersAction[Parser], name: str, summary: str) -> Parser:
    return commands.add_parser(
        name,
        help=summary,
        description=fold(summary[0].upper() + summary[1:] + "."),
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _scenario(p: argparse.ArgumentParser) -> None:
    """The scenario file and the flags that override its keys."""
    tuning.overridden(p)


def _arm(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--arm",
        choices=("sim", "host", "vm"),
        help="where it runs: on the simulator (default), on the running kernel, or on another kernel in QEMU",
    )


def _outputs(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--style", choices=STYLES, default="table", metavar="STYLE", help=f"the layout of the text: {', '.join(STYLES)}"
    )
    p.add_argument(
        "--details",
        dest="style",
        action="store_const",
        const="details",
        help="everything as text: options, pooled samples, spread, model errors, notes (the same as --style details)",
    )
    p.add_argument("--html", type=Path, metavar="FILE", help="write a self-contained HTML page; - is stdout")
    p.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="write all samples and verdicts as JSON; - is stdout"
    )
    p.add_argument(
        "--fail-on",
        type=values.gates,
        default=[],
        metavar="VERDICT[:METRIC[:PERCENT]]",
        help=f"exit 1 on a verdict ({', '.join(GATES)}) of METRIC, or of any declared metric ([[metric]]; of every "
        "metric if the scenario declares none), if the change is certainly larger than PERCENT or the `model` error. "
        "Changes of metrics that no gate covers are listed and do not fail",
    )
    p.add_argument("--against", metavar="NAME", help="the baseline (default: the first variant); `all`: every pair")
    p.add_argument(
        "--validity",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="use the model errors of this validation as well, see `validate --store`",
    )


def _common(p: argparse.ArgumentParser) -> None:
    p.add_argument("-q", "--quiet", action="store_true", help="print only results and errors")
    p.add_argument("-v", "--verbose", action="store_true", help="print a line per run")
    p.add_argument("--no-progress", dest="progress", action="store_false", help="do not show progress on stderr")


class _Version(argparse.Action):
    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from schedlab import __version__

        print(f"schedlab {__version__}")
        parser.exit()


COMMANDS: Mapping[str, tuple[str, Flags]] = {
    "compare": ("run every variant of a scenario, judge them against the first, and print the table", _compare),
    "run": ("run one variant with one seed and show its metrics", _run),
    "explain": (
        "show the first scheduling decision that differs between two variants, or why a task waits at a given time",
        _explain,
    ),
    "ablate": ("show how much each mechanism contributes to the difference between two variants", _ablate),
    "list": ("list machines, kernels, distributions, features, workloads, knobs, metrics or studies", _list),
    "report": ("show a stored result again, or compare two", _report),
    "replay": ("replay a recorded trace under a kernel row and count the agreeing decisions", _replay),
    "waits": ("list the longest waits for a CPU in a trace and what caused them", _waits),
    "whatif": ("predict what the tasks of a recorded trace would get under another kernel or other settings", _whatif),
    "identify": ("find the kernel row whose decisions match those of a recorded kernel", _identify),
    "changelog": ("list what changed between two kernel rows", _changelog),
    "kernel": ("build the scheduler of a kernel's source tree, check it, and compare it with a row", compiled.kernel),
    "convert": ("write a trace in another format", _convert),
    "view": ("show every slice of traces, or of one seed of a stored result, in a browser", _view),
    "settings": ("print pasted settings of a kernel as keys of a variant", _settings),
    "new": ("write a commented scenario for a family of workloads to stdout", tuning.new),
    "tune": ("search for values of keys that improve a metric, and confirm the winner on fresh seeds", tuning.tune),
    "shrink": ("print the smallest scenario that still has a verdict, a failure or a divergence", tuning.shrink),
    "record": ("record a scheduler trace of a workload on a real kernel", real_kernels.record),
    "scx": ("check which kernels a sched_ext scheduler can run on, or run it under random loads", extensible.flags),
    "doctor": ("report what this machine supports and how to add what is missing", real_kernels.doctor),
    "calibrate": ("measure the scheduling costs of this machine and write a machine file", real_kernels.calibrate),
    "validate": (
        "run scenarios on the simulator and on a real kernel, and compare them",
        real_kernels.validate,
    ),
    "reproduce": ("simulate published studies and show how far they agree with the publication", studies.flags),
    "sweep": ("run a scenario at many points and show at which of them each variant is better", sweeps.flags),
}
"""What each command does, and the function that adds its flags."""
