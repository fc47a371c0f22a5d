"""The flags of `schedlab tune`, `shrink` and `new`."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedlab.cli import values

SAMPLERS = ("tpe", "random", "qmc")
PRUNERS = ("median", "halving", "none")


def tune(p: argparse.ArgumentParser) -> None:
    """What is searched, for what, and how the winner is confirmed."""
    overridden(p)
    p.add_argument("--variant", metavar="NAME", help="the variant to tune (default: the only one)")
    p.add_argument("--minimise", metavar="METRIC", help="the metric to minimise, such as probe.latency.p99")
    p.add_argument("--maximise", metavar="METRIC", help="or the metric to maximise")
    p.add_argument(
        "--subject-to",
        dest="bounds",
        action="append",
        default=[],
        metavar="METRIC<=+2%",
        help="how far another metric may change from the default (<= or >=); repeatable",
    )
    p.add_argument(
        "--over",
        action="append",
        required=True,
        metavar="KEY=LOW..HIGH",
        help="a key of --set and its range, such as knobs.base_slice=0.5ms..30ms, or KEY=A,B,C; repeatable",
    )
    p.add_argument("--trials", type=values.positive, default=50, metavar="N", help="values to try (default: 50)")
    p.add_argument("--seeds", type=values.seeds, metavar="N|LIST", help="seeds of a trial: 20 or 1,2,7")
    p.add_argument("--confirm", type=values.positive, metavar="N", help="fresh seeds (default: as many as --seeds)")
    p.add_argument(
        "--arm", dest="confirm_on", choices=("sim", "host", "vm"), default="sim", help="where the winner is confirmed"
    )
    p.add_argument("--sampler", choices=SAMPLERS, default="tpe", help="how values are proposed (default: tpe)")
    p.add_argument("--pruner", choices=PRUNERS, default="median", help="when to stop a trial early (default: median)")
    p.add_argument("--seed", type=values.seed, default=1, metavar="N", help="the seed of the sampler (default: 1)")
    p.add_argument("--jobs", type=values.jobs, metavar="N", help="runs at the same time (default: one per CPU)")
    p.add_argument("--out", type=Path, metavar="DIR", help="keep the runs in DIR; the same command continues there")
    p.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write everything as JSON; - is stdout")


def overridden(p: argparse.ArgumentParser) -> None:
    """The scenario file and the flags that override its keys."""
    p.add_argument("scenario", metavar="SCENARIO", help="a scenario file")
    p.add_argument("--machine", metavar="NAME|FILE", help="override the scenario's machine")
    p.add_argument("--duration", metavar="TIME", help="override the duration of a run, for example 500ms")
    p.add_argument("--noise", type=values.switch, metavar="on|off", help="override whether random noise is enabled")
    p.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override any key, such as knobs.base_slice=3ms (all variants) or workload.NAME.OPTION=4; repeatable",
    )
    p.add_argument(
        "--settings",
        action="append",
        default=[],
        metavar="[VARIANT=]FILE",
        help="give the variants the settings in a features dump, sysctl lines or a kernel's .config; repeatable",
    )


def new(p: argparse.ArgumentParser) -> None:
    """The family of the scenario."""
    p.add_argument("family", nargs="?", metavar="FAMILY", help="a family (default: list the families)")


def shrink(p: argparse.ArgumentParser) -> None:
    """The property to keep."""
    overridden(p)
    p.add_argument("--seeds", type=values.seeds, metavar="N|LIST", help="number of seeds or a list: 20 or 1,2,7")
    p.add_argument(
        "--keep",
        required=True,
        metavar="PROPERTY",
        help="what must remain: 'verdict worse:METRIC' (as --fail-on), 'failure WORDS' of a run, 'divergence QUESTION'",
    )
    p.add_argument("--tests", type=values.positive, default=500, metavar="N", help="candidates to run (default: 500)")
    p.add_argument("--jobs", type=values.jobs, metavar="N", help="runs at the same time (default: one per CPU)")
