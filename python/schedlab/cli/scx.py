"""`schedlab scx`: sched_ext schedulers, checked against kernels without running either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schedlab import documents
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.engine import Engine, native_engine
from schedlab.guests import btf
from schedlab.render import extensible

SCHEMA = "schedlab.scx-check/1"


def execute(options: Options, console: Console, engine: Engine | None) -> int:
    """Exit code 1 if a kernel lacks what a scheduler needs, otherwise 0."""
    engine = engine or native_engine()
    kernels = [btf.find(name, engine.kernel_btf) for name in options.kernels]
    files = [str(kernel.file) for kernel in kernels]
    found: list[dict[str, Any]] = []
    for path in options.objects:
        answer = engine.scx_check(str(path), files)
        lacks = [
            {"kernel": kernel.kernel, "runs": not any(lack["needed"] for lack in lacks), "lacks": lacks}
            for kernel, lacks in zip(kernels, answer["lacks"], strict=True)
        ]
        found.append({"object": str(path), **answer, "lacks": lacks})
    document = documents.dumps({"schema": SCHEMA, "objects": found}, indent=1)
    if options.json == "-":
        console.result(document)
    else:
        console.text(extensible.text(found))
        if options.json:
            write_file(Path(options.json), document + "\n")
    return 0 if all(kernel["runs"] for one in found for kernel in one["lacks"]) else 1
