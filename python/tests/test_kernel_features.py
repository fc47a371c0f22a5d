"""`schedlab list features` against what each kernel's `kernel/sched/features.h` declares: every name, every default.

The row 5.13 is held to the newer of the two kernels it lies between, 5.14.2. The 2023 series is not here: it was a set
of patches. Configurations: x86-64 SMP without PREEMPT_RT, from 7.x on with CONFIG_HRTIMER_REARM_DEFERRED.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from schedlab.cli import main

pytest.importorskip("schedlab._engine", reason="the simulator is not built")

DECLARED = {
    "5.2": (
        "ATTACH_AGE_LOAD CACHE_HOT_BUDDY GENTLE_FAIR_SLEEPERS LAST_BUDDY NONTASK_CAPACITY RT_PUSH_IPI "
        "RT_RUNTIME_SHARE SIS_PROP START_DEBIT TTWU_QUEUE UTIL_EST WAKEUP_PREEMPTION WA_BIAS WA_IDLE WA_WEIGHT",
        "DOUBLE_TICK HRTICK LB_BIAS LB_MIN NEXT_BUDDY SIS_AVG_CPU WARN_DOUBLE_CLOCK",
    ),
    "5.7": (
        "ATTACH_AGE_LOAD CACHE_HOT_BUDDY GENTLE_FAIR_SLEEPERS LAST_BUDDY NONTASK_CAPACITY RT_PUSH_IPI "
        "RT_RUNTIME_SHARE SIS_PROP START_DEBIT TTWU_QUEUE UTIL_EST UTIL_EST_FASTUP WAKEUP_PREEMPTION WA_BIAS "
        "WA_IDLE WA_WEIGHT",
        "DOUBLE_TICK HRTICK LB_MIN NEXT_BUDDY SIS_AVG_CPU WARN_DOUBLE_CLOCK",
    ),
    "5.13": (
        "ALT_PERIOD ATTACH_AGE_LOAD BASE_SLICE CACHE_HOT_BUDDY GENTLE_FAIR_SLEEPERS LAST_BUDDY NONTASK_CAPACITY "
        "RT_PUSH_IPI SIS_PROP START_DEBIT TTWU_QUEUE UTIL_EST UTIL_EST_FASTUP WAKEUP_PREEMPTION WA_BIAS WA_IDLE "
        "WA_WEIGHT",
        "DOUBLE_TICK HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_RUNTIME_SHARE WARN_DOUBLE_CLOCK",
    ),
    "5.10": (
        "ALT_PERIOD ATTACH_AGE_LOAD BASE_SLICE CACHE_HOT_BUDDY GENTLE_FAIR_SLEEPERS LAST_BUDDY NONTASK_CAPACITY "
        "RT_PUSH_IPI SIS_PROP START_DEBIT TTWU_QUEUE UTIL_EST UTIL_EST_FASTUP WAKEUP_PREEMPTION WA_BIAS WA_IDLE "
        "WA_WEIGHT",
        "DOUBLE_TICK HRTICK LB_MIN NEXT_BUDDY RT_RUNTIME_SHARE SIS_AVG_CPU WARN_DOUBLE_CLOCK",
    ),
    "5.15": (
        "ALT_PERIOD ATTACH_AGE_LOAD BASE_SLICE CACHE_HOT_BUDDY GENTLE_FAIR_SLEEPERS LAST_BUDDY NONTASK_CAPACITY "
        "RT_PUSH_IPI SIS_UTIL START_DEBIT TTWU_QUEUE UTIL_EST UTIL_EST_FASTUP WAKEUP_PREEMPTION WA_BIAS WA_IDLE "
        "WA_WEIGHT",
        "DOUBLE_TICK HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_RUNTIME_SHARE SIS_PROP WARN_DOUBLE_CLOCK",
    ),
    "6.1": (
        "ALT_PERIOD ATTACH_AGE_LOAD BASE_SLICE CACHE_HOT_BUDDY GENTLE_FAIR_SLEEPERS LAST_BUDDY NI_RANDOM "
        "NONTASK_CAPACITY SIS_UTIL START_DEBIT TTWU_QUEUE UTIL_EST UTIL_EST_FASTUP WAKEUP_PREEMPTION WA_BIAS "
        "WA_IDLE WA_WEIGHT",
        "DOUBLE_TICK HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_PUSH_IPI RT_RUNTIME_SHARE SIS_PROP "
        "WARN_DOUBLE_CLOCK",
    ),
    "6.3": (
        "ALT_PERIOD ATTACH_AGE_LOAD BASE_SLICE CACHE_HOT_BUDDY GENTLE_FAIR_SLEEPERS LAST_BUDDY NONTASK_CAPACITY "
        "RT_PUSH_IPI SIS_UTIL START_DEBIT TTWU_QUEUE UTIL_EST UTIL_EST_FASTUP WAKEUP_PREEMPTION WA_BIAS WA_IDLE "
        "WA_WEIGHT",
        "DOUBLE_TICK HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_RUNTIME_SHARE SIS_PROP WARN_DOUBLE_CLOCK",
    ),
    "6.6": (
        "ATTACH_AGE_LOAD CACHE_HOT_BUDDY HZ_BW NONTASK_CAPACITY PLACE_DEADLINE_INITIAL PLACE_LAG RT_PUSH_IPI "
        "RUN_TO_PARITY SIS_UTIL TTWU_QUEUE UTIL_EST UTIL_EST_FASTUP WAKEUP_PREEMPTION WA_BIAS WA_IDLE WA_WEIGHT",
        "DOUBLE_TICK HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_RUNTIME_SHARE SIS_PROP WARN_DOUBLE_CLOCK",
    ),
    "6.6.9": (
        "ATTACH_AGE_LOAD CACHE_HOT_BUDDY HZ_BW NONTASK_CAPACITY PLACE_DEADLINE_INITIAL PLACE_LAG RT_PUSH_IPI "
        "RUN_TO_PARITY SIS_UTIL TTWU_QUEUE UTIL_EST UTIL_EST_FASTUP WAKEUP_PREEMPTION WA_BIAS WA_IDLE WA_WEIGHT",
        "DOUBLE_TICK HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_RUNTIME_SHARE SIS_PROP WARN_DOUBLE_CLOCK",
    ),
    "6.8": (
        "ATTACH_AGE_LOAD CACHE_HOT_BUDDY HZ_BW NONTASK_CAPACITY PLACE_DEADLINE_INITIAL PLACE_LAG RT_PUSH_IPI "
        "RUN_TO_PARITY SIS_UTIL TTWU_QUEUE UTIL_EST WAKEUP_PREEMPTION WA_BIAS WA_IDLE WA_WEIGHT",
        "DOUBLE_TICK HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_RUNTIME_SHARE WARN_DOUBLE_CLOCK",
    ),
    "6.12.0": (
        "ATTACH_AGE_LOAD CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO NONTASK_CAPACITY PLACE_DEADLINE_INITIAL PLACE_LAG "
        "PLACE_REL_DEADLINE PREEMPT_SHORT RT_PUSH_IPI RUN_TO_PARITY SIS_UTIL TTWU_QUEUE UTIL_EST WAKEUP_PREEMPTION "
        "WA_BIAS WA_IDLE WA_WEIGHT",
        "DOUBLE_TICK HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_RUNTIME_SHARE WARN_DOUBLE_CLOCK",
    ),
    "6.12.107": (
        "ATTACH_AGE_LOAD CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO NI_RANDOM NONTASK_CAPACITY PICK_BUDDY "
        "PLACE_DEADLINE_INITIAL PLACE_LAG PLACE_REL_DEADLINE PREEMPT_SHORT RUN_TO_PARITY SIS_UTIL TTWU_QUEUE "
        "UTIL_EST WAKEUP_PREEMPTION WA_BIAS WA_IDLE WA_WEIGHT",
        "DOUBLE_TICK HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_PUSH_IPI RT_RUNTIME_SHARE WARN_DOUBLE_CLOCK",
    ),
    "6.18.2": (
        "ATTACH_AGE_LOAD CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO NONTASK_CAPACITY PICK_BUDDY "
        "PLACE_DEADLINE_INITIAL PLACE_LAG PLACE_REL_DEADLINE PREEMPT_SHORT RT_PUSH_IPI RUN_TO_PARITY SIS_UTIL "
        "TTWU_QUEUE UTIL_EST WAKEUP_PREEMPTION WA_BIAS WA_IDLE WA_WEIGHT",
        "HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_RUNTIME_SHARE WARN_DOUBLE_CLOCK",
    ),
    "6.18.44": (
        "ATTACH_AGE_LOAD CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO NI_RANDOM NONTASK_CAPACITY PICK_BUDDY "
        "PLACE_DEADLINE_INITIAL PLACE_LAG PLACE_REL_DEADLINE PREEMPT_SHORT RUN_TO_PARITY SIS_UTIL "
        "TTWU_QUEUE UTIL_EST WAKEUP_PREEMPTION WA_BIAS WA_IDLE WA_WEIGHT",
        "HRTICK HRTICK_DL LATENCY_WARN LB_MIN NEXT_BUDDY RT_PUSH_IPI RT_RUNTIME_SHARE WARN_DOUBLE_CLOCK",
    ),
    "7.2": (
        "ATTACH_AGE_LOAD CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO HRTICK HRTICK_DL NI_RANDOM NI_RATE "
        "NONTASK_CAPACITY PICK_BUDDY PLACE_DEADLINE_INITIAL PLACE_LAG PLACE_REL_DEADLINE PREEMPT_SHORT "
        "RUN_TO_PARITY SIS_UTIL TTWU_QUEUE UTIL_EST WAKEUP_PREEMPTION WA_BIAS WA_IDLE WA_WEIGHT",
        "LATENCY_WARN LB_MIN NEXT_BUDDY PARANOID_AVG RT_PUSH_IPI RT_RUNTIME_SHARE WARN_DOUBLE_CLOCK",
    ),
}
"""Per row the features that are on, then those that are off."""


@pytest.mark.parametrize("row", DECLARED)
def test_every_feature_of_the_kernel_is_listed_with_its_default(row: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "features", "--kernel", row, "--json"]) == 0
    features = json.loads(capsys.readouterr().out)
    listed = {feature["id"]: feature["defaults"][row] for feature in features if feature["proposed"] is None}
    on, off = (names.split() for names in DECLARED[row])
    assert listed == dict.fromkeys(on, True) | dict.fromkeys(off, False)


def test_what_is_refused_says_so_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("features", "knobs"):
        assert main(["list", kind, "--json"]) == 0
        for setting in json.loads(capsys.readouterr().out):
            assert setting["modelled"] == (len(setting["refused"]) < len(setting["defaults"])), setting
    assert main(["list", "features"]) == 0
    unwrapped = re.sub(r"\n +", " ", capsys.readouterr().out)
    lines = {line.split()[0]: line for line in unwrapped.splitlines()}
    assert "refused" not in lines["HRTICK_DL"]
    assert "; refused in 6.6, 6.6.9, 6.8, 6.12.0, " in lines["DOUBLE_TICK"]
    assert "refused" not in lines["RUN_TO_PARITY"]
    assert main(["list", "knobs"]) == 0
    unwrapped = re.sub(r"\n +", " ", capsys.readouterr().out)
    lines = {line.split()[0]: line for line in unwrapped.splitlines()}
    assert "; refused: it takes effect only when a CPU goes online or offline" in lines["tunable_scaling"]
    assert "; refused in 6.12.0, " in lines["rt_runtime_us"]
    assert main(["list", "features", "--kernel", "7.2"]) == 0
    unwrapped = re.sub(r"\n +", " ", capsys.readouterr().out)
    lines = {line.split()[0]: line for line in unwrapped.splitlines()}
    assert "refused" not in lines["HRTICK_DL"]


def test_knobs_show_their_defaults_in_that_row(capsys: pytest.CaptureFixture[str]) -> None:
    for row, slice_line in (("6.12.0", "750us"), ("6.12.107", "700us"), ("7.2", "700us")):
        assert main(["list", "knobs", "--kernel", row]) == 0
        out = capsys.readouterr().out
        assert out.split()[:2] == ["base_slice_ns", slice_line]
        assert "; the default grows with the CPUs" in " ".join(out.split())


def test_a_bug_is_shown_on_exact_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """A series such as 6.12 moves on to its next stable release, which may have the fix."""
    assert main(["list", "kernels", "--json"]) == 0
    rows = {row["id"] for row in json.loads(capsys.readouterr().out)}
    files = sorted((Path(__file__).resolve().parents[2] / "scenarios/bugs").glob("*.toml"))
    used = {variant["kernel"] for path in files for variant in tomllib.loads(path.read_text())["variant"]}
    assert len(used) > 5
    assert used <= rows
