"""What `schedlab sweep` shows and writes once the runs are there; also for `schedlab report` on a stored sweep."""

from __future__ import annotations

import json
from pathlib import Path

from schedlab import files
from schedlab.cli.console import Console, write_file
from schedlab.cli.options import Options
from schedlab.cli.paths import STDOUT
from schedlab.errors import InputError, RunError, not_written
from schedlab.sweeping import export, store
from schedlab.sweeping.store import Experiment

SHOWN_FAILURES = 5


def check(options: Options) -> None:
    """Refuse before the first run what could not be written after the last."""
    if options.export is not None:
        export.check(options.export)


def tell_failures(experiment: Experiment, console: Console) -> None:
    """The first failed runs, each with the command that repeats it."""
    failures = experiment.failures
    for run, failure in failures[:SHOWN_FAILURES]:
        text = f"{experiment.label(run.point)}: {run.variant} seed {run.seed}: {failure.message}"
        replay = experiment.records[run.id].get("replay")
        console.error(RunError(text, hint=f"again: {replay}" if replay else failure.hint))
    if len(failures) > SHOWN_FAILURES:
        console.say(f"and {len(failures) - SHOWN_FAILURES} more failed runs; --json and --html list all of them")


def show(experiment: Experiment, options: Options, console: Console) -> None:
    """The judgements to stdout, and every file that was asked for."""
    from schedlab.render import sweep as render
    from schedlab.render.blocks import html
    from schedlab.render.document import dump
    from schedlab.sweeping.judged import judged

    found = judged(experiment)
    if options.json == STDOUT:
        console.result(dump(render.document(found)))
    elif str(options.html) != STDOUT:
        console.text(render.text(found))
    if options.json not in (None, STDOUT):
        write_file(Path(options.json), dump(render.document(found)) + "\n")
    if str(options.html) == STDOUT:
        from schedlab.render.sweep_page import page

        console.page(html(page(found)))
    elif options.html is not None:
        from schedlab.render.sweep_page import page

        write_file(options.html, html(page(found)))
        console.say(f"page: {options.html}")
    if options.pictures is not None:
        from schedlab.render.sweep_charts import charts

        for name, spec in charts(found).items():
            write_file(options.pictures / f"{name}.svg", svg(spec))
        console.say(f"pictures: {options.pictures}")
    if options.export is not None:
        content = export.content(experiment, options.export.suffix)
        try:
            options.export.parent.mkdir(parents=True, exist_ok=True)
            files.replace(options.export, content)
        except OSError as e:
            raise not_written(f"cannot write {options.export}", e) from None
        console.say(f"export: {options.export}")


def svg(spec: dict[str, object]) -> str:
    """A picture with a background of its own, legible on any page."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg({**spec, "background": "white"}))


def merge(options: Options, out: Path, console: Console) -> int:
    """Join the runs of several directories of one plan into `out`, and show the whole."""
    parts = [store.read(path) for path in options.merge]
    plans = {part.manifest["plan"]: part for part in parts}
    if len(plans) > 1:
        shards = ", ".join(f"{part.path}: {plan}" for plan, part in plans.items())
        raise InputError(f"these are shards of different plans ({shards})", hint="run the same sweep on the same build")
    first = parts[0]
    sources = [file for part in parts for file in store.result_files(part.path)]
    records = store.merged(sources, {run.id for run in first.runs})
    try:
        out.mkdir(parents=True, exist_ok=True)
        target = out / "results.jsonl"
        if target.exists() and out not in options.merge:
            raise InputError(f"{out} already holds runs", hint="choose another directory with --out")
        text = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records.values())
        plan = first.manifest["plan"]
        for name in (f"plan-{plan}.jsonl", f"manifest-{plan}.json"):
            files.replace(out / name, (first.path / name).read_bytes(), sync=True)
        files.replace(target, text, sync=True)
        files.replace(out / "manifest.json", (first.path / f"manifest-{plan}.json").read_bytes(), sync=True)
    except OSError as e:
        raise not_written(f"cannot write {out}", e) from None
    experiment = store.read(out)
    tell_failures(experiment, console)
    if experiment.missing:
        console.say(f"{experiment.missing} runs of the plan are in none of these directories")
    show(experiment, options, console)
    return 3 if experiment.failures else 0
