"""The parsed command line, with types."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schedlab import gate
    from schedlab.cli.auto import Auto


class Options(argparse.Namespace):
    """Each command reads the attributes that its flags and arguments define."""

    command: str
    sources: list[Path]
    port: int
    arm: str | None
    seeds: int | list[int] | None
    seeds_or_auto: int | list[int] | Auto | None
    against: str | None
    noise_floor: bool | None
    robust: int
    jobs: int | None
    quiet: bool
    verbose: bool
    progress: bool
    fail_on: list[gate.Gate]
    validity: list[Path]
    html: Path | None
    json: str | None
    trace: Path | None
    style: str
    out: Path | None
    resume: bool
    scenario: str
    variant: str | None
    seed: int | None
    check_determinism: bool
    kind: str
    what: str | None
    config: Path | None
    machine_cpus: list[int] | None
    switches: int | None
    kernel: str | None
    results: list[Path]
    source: Path
    target: Path
    buffer: str | None
    matrix: bool
    state: bool
    explain: tuple[str, int] | None
    first: int
    workload: list[str]
    cpus: int | None
    memory: int
    time_limit: int
    probes: bool
    records: int
    smp: str | None
    nodes: int | None
    emulation: str | None
    action: str
    objects: list[Path]
    kernels: list[str]
    every: bool
    recorded_on: str | None
    load_cpus: int | None
    load_tasks: int | None
    load_ns: int | None
    variables: list[tuple[str, int]] | None
    chaos: int | None
    markdown: bool
    append: str
    restore: bool
    fetch: str | None
    measure: bool
    quick: bool
    traced: bool
    machine: str | None
    duration: str | None
    noise: bool | None
    overrides: list[str]
    settings: list[str]
    family: str | None
    keep: str
    tests: int
    minimise: str | None
    maximise: str | None
    bounds: list[str]
    over: list[str]
    trials: int
    confirm: int | None
    confirm_on: str
    sampler: str
    pruner: str
    name: str | None
    scenarios: list[str]
    shown_in: Path
    before: str
    after: str
    runs: Path | None
    store: Path | None
    stored: str | None
    resimulate: bool
    autogroup: bool
    variants: list[str]
    task: str | None
    at: int | None
    metric: str | None
    studies: list[str]
    short: bool
    units: int | None
    time: int | None
    reasons: str | None
    page: Path | None
    record: str | None
    note: str | None
    list: bool
    sweep: str | None
    shard: tuple[int, int] | None
    shards: int
    merge: Sequence[Path]
    dask: str | None
    emit: str | None
    dry_run: bool
    retry: bool
    export: Path | None
    pictures: Path | None
