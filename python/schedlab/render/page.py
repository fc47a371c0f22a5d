"""One HTML file without any reference outside it: numbers as tables, pictures as SVG, live where scripts run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from schedlab.closer import Closer
from schedlab.comparison import Comparison, MetricComparison
from schedlab.judge import Judgement
from schedlab.render import charts as drawn
from schedlab.render import notes
from schedlab.render.cells import change, headline, interval, model_error
from schedlab.render.closer import causes_and_load, closer_look
from schedlab.render.figure import figure, scripts
from schedlab.render.forest import forest
from schedlab.render.further import further
from schedlab.render.grid import NOTHING, percent, value
from schedlab.render.markup import cells, details, escape, facts, items, table
from schedlab.render.navigation import navigation
from schedlab.render.opening import curve, opening, opening_series, summary
from schedlab.render.provenance import provenance
from schedlab.render.timeline import script
from schedlab.render.unjudged import unjudged

_HERE = Path(__file__).parent


def page(c: Comparison, look: Closer | str | None = None) -> str:
    """The whole document; `look` is the closer look at the first pair, or why there is none."""
    title = f"{c.scenario.name}: {' and '.join(column.name for column in c.columns)}, {c.arm_word}"
    body = [
        _summary(c),
        *opening(c),
        *causes_and_load(c, look),
        further(c, look),
        _judgements(c),
        _figure("changes", forest(c)),
        _setup(c),
        *closer_look(look),
        *_curves(c),
        *_unjudged(c),
        *_metrics(c),
        provenance(c),
    ]
    return document(title, body, extra=[script()] if isinstance(look, Closer) else [])


def document(title: str, body: Iterable[str], *, charts: bool = True, extra: Iterable[str] = ()) -> str:
    """A page in the style of all pages; `extra` stands behind what draws the charts, if there are any."""
    contents, parts = navigation(body)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{(_HERE / 'page.css').read_text(encoding='utf-8')}</style></head><body><main>",
            contents,
            *parts,
            "</main>",
            *(scripts() if charts else []),
            *extra,
            "</body></html>",
            "",
        ]
    )


def _summary(c: Comparison) -> str:
    what = headline(c).split(c.arm_word, 1)[1].strip()
    lines = [f"<h1>{escape(c.scenario.name)}</h1>"]
    lines.append(summary(c))
    lines.append(f'<p><span class="arm">{escape(c.arm_word)}</span> {escape(what)}</p>')
    lines += [f"<p><strong>{escape(text)}</strong></p>" for text in notes.trouble(c)]
    return "\n".join(lines)


def _setup(c: Comparison) -> str:
    """How the variants differ, and what ran: machine, workloads with every option."""
    if not c.setup:
        return ""
    differ = [(fact.name, fact.text) for fact in c.setup if fact.kind == "variant"]
    ran = [(fact.name, fact.text) for fact in c.setup if fact.kind != "variant"]
    parts = [f"<h2>How the variants differ</h2>{facts(differ)}"] if differ else []
    return "\n".join([*parts, f"<h2>What ran</h2>{facts(ran)}"])


def _judgements(c: Comparison) -> str:
    parts = ["<h2>Judgement</h2>"]
    simulated = any(m.model is not None for m in c.metrics)
    for a, b in c.pairs:
        head = ["metric", "unit", "better", f"{a}, median", f"{b}, median", "change", "95% interval"]
        head += [*(["model error"] * simulated), "verdict", "why"]
        found = [(m, j) for m in c.metrics for j in m.comparisons if (j.a, j.b) == (a, b)]
        rows = [_row(m, j, head, simulated=simulated) for m, j in found]
        parts.append(table(f"{b} against {a}, {c.arm_word}, {len(c.seeds)} seeds", head, rows, cards=True))
    lines = [
        *notes.reading(c),
        *notes.cut(c),
        *notes.few(c),
        *notes.looks(c),
        *notes.holm(c),
        *notes.models(c),
        *notes.noise(c),
        *notes.robustness(c),
    ]
    return "\n".join([*parts, items(lines)])


def _row(of: MetricComparison, j: Judgement, head: list[str], *, simulated: bool) -> list[str]:
    m, d = of.metric, j.difference
    texts = [m.name, m.unit, m.better, value(d.median_a), value(d.median_b), change(j), interval(j)]
    texts += [*([model_error(of)] * simulated), j.verdict, j.reason]
    looks = [*([""] * (len(texts) - 3)), j.effect, "why"]
    return cells(head, texts, title=m.help, looks=looks)


def _unjudged(c: Comparison) -> Iterable[str]:
    """What else changed: each quantity that is not judged, those that changed first."""
    for a, b in c.pairs:
        found = sorted(unjudged(c, a, b), key=lambda one: not one.changed)
        if not found:
            continue
        yield "<h2>What else changed</h2>" if (a, b) == c.pairs[0] else ""
        head = ["quantity", "unit", f"{a}, median", f"{b}, median", "change", "95% interval", "meaning"]
        rows = []
        for one in found:
            j = Judgement(a, b, one.difference, "", "none", "")
            d = one.difference
            texts = [one.name, one.unit, value(d.median_a), value(d.median_b), change(j), interval(j), one.meaning]
            rows.append(cells(head, texts, looks=["", "", "", "", "", "why"]))
        yield table(f"{b} against {a}, {c.arm_word}: not judged, shown as it is", head, rows, cards=True)


def _curves(c: Comparison) -> Iterable[str]:
    """The percentile curves of what is judged, then those of the other series, which a click shows."""
    names = list(dict.fromkeys(s for col in c.columns for run in col.runs.values() for s in run.series))
    judged = {m.metric.of for m in c.metrics}
    shown = [(name, curve(c, f"curve-{i}", name)) for i, name in enumerate(names)]
    first = [text for name, text in shown if text and name in judged and name != opening_series(c)]
    rest = [text for name, text in shown if text and name not in judged]
    if first or rest:
        yield "<h2>Percentiles</h2>"
    yield f'<div class="charts">{"".join(first)}</div>' if first else ""
    if rest:
        count = f"{len(rest)} more series of the scheduler"
        yield details(count, f'<div class="charts">{"".join(rest)}</div>')


def _metrics(c: Comparison) -> Iterable[str]:
    yield '<h2>Every seed</h2><div class="charts">'
    for i, m in enumerate(c.metrics):
        yield f"<div><h3>{escape(m.metric.name)}</h3><p>{escape(m.metric.help)}</p>"
        yield _figure(f"strip-{i}", drawn.strips(c, m))
        yield details(f"Numbers of {m.metric.name}", _sample_table(c, m)) + "</div>"
    yield "</div>"


def _sample_table(c: Comparison, m: MetricComparison) -> str:
    names = list(m.samples)
    head = ["seed", *names, *(f"{b} against {a}" for a, b in c.pairs)]
    rows = []
    for i, seed in enumerate(c.seeds):
        texts = [str(seed), *(value(m.samples[n][i]) for n in names)]
        for a, b in c.pairs:
            x, y = m.samples[a][i], m.samples[b][i]
            texts.append(percent(100 * (y - x) / abs(x)) if x and y is not None else NOTHING)
        rows.append(cells(head, texts))
    return table(f"{m.metric.name} in {m.metric.unit or 'units'}, {c.arm_word}", head, rows)


def _figure(name: str, spec: drawn.Spec | None) -> str:
    return "" if spec is None else figure(name, spec)
