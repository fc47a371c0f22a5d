"""One HTML file without any reference outside it: numbers as tables, pictures as SVG, live where scripts run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as html_escape
from pathlib import Path

from schedlab import plain
from schedlab.comparison import Comparison, MetricComparison
from schedlab.judge import Judgement
from schedlab.render import charts, notes
from schedlab.render.cells import change, headline, interval, model_error
from schedlab.render.figure import figure, scripts
from schedlab.render.grid import percent, value
from schedlab.scenario import Metric

_HERE = Path(__file__).parent
_TEXT, _LEFT = {"metric", "verdict", "why", "seed", "percentile"}, ' class="text"'


def escape(text: str) -> str:
    """Text for the page, whatever is in it."""
    return html_escape(plain.escaped(text))


def page(c: Comparison) -> str:
    """The whole document."""
    title = f"{c.scenario.name}: {' and '.join(column.name for column in c.columns)}, {c.arm_word}"
    body = [
        _summary(c),
        _setup(c),
        _judgements(c),
        _figure("changes", charts.changes(c)),
        *_curves(c),
        *_metrics(c),
        _provenance(c),
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{(_HERE / 'page.css').read_text(encoding='utf-8')}</style></head><body><main>",
            *body,
            "</main>",
            *scripts(),
            "</body></html>",
            "",
        ]
    )


def _summary(c: Comparison) -> str:
    lines = [f"<h1>{escape(c.scenario.name)}</h1>"]
    lines.append(
        f'<p><span class="arm">{escape(c.arm_word)}</span> {escape(headline(c).split(c.arm_word, 1)[1].strip())}</p>'
    )
    lines += [f"<p><strong>{escape(text)}</strong></p>" for text in notes.trouble(c)]
    for a, b in c.pairs:
        of_pair = [(m, j) for m, j in c.judgements() if (j.a, j.b) == (a, b)]
        items = [_sentence(m, j) for m, j in of_pair if j.effect != "none"]
        quiet = len(of_pair) - len(items)
        items += [f"no judged change in {quiet} other metric{'s' * (quiet != 1)}"] if quiet else []
        lines.append(f"<p>{escape(b)} against {escape(a)}, {escape(c.arm_word)}:</p>")
        lines.append("<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>")
    return "\n".join(lines)


def _sentence(m: Metric, j: Judgement) -> str:
    name = escape(m.name)
    return f'{name} <span class="{j.effect}">{escape(change(j))} {j.effect}</span>, {escape(_interval_words(j))}'


def _interval_words(j: Judgement) -> str:
    return f"95% interval {interval(j)}" if j.difference.interval else j.verdict


def _setup(c: Comparison) -> str:
    """What ran: machine, workloads with every option, and how the variants differ."""
    if not c.setup:
        return ""
    items = "".join(f"<dt>{escape(fact.name)}</dt><dd>{escape(fact.text)}</dd>" for fact in c.setup)
    return f"<h2>What ran</h2><dl>{items}</dl>"


def _judgements(c: Comparison) -> str:
    parts = ["<h2>Judgement</h2>"]
    simulated = any(m.model is not None for m in c.metrics)
    for a, b in c.pairs:
        head = ["metric", "unit", "better", f"{a}, median", f"{b}, median", "change", "95% interval"]
        head += [*(["model error"] * simulated), "verdict", "why"]
        found = [(m, j) for m in c.metrics for j in m.comparisons if (j.a, j.b) == (a, b)]
        rows = [_cells(m, j, head, simulated) for m, j in found]
        parts.append(_table(f"{b} against {a}, {c.arm_word}, {len(c.seeds)} seeds", head, rows, cards=True))
    lines = [*notes.looks(c), *notes.holm(c), *notes.models(c), *notes.noise(c), *notes.robustness(c), *notes.ties(c)]
    parts += ["<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"] if lines else []
    return "\n".join(parts)


def _cells(of: MetricComparison, j: Judgement, head: Sequence[str], simulated: bool) -> list[str]:
    """The cells of a row; each names its column, for screens on which a row is a card."""
    m, d = of.metric, j.difference
    texts = [m.unit, m.better, value(d.median_a), value(d.median_b), change(j), interval(j)]
    texts += [*([model_error(of)] * simulated), j.verdict, j.reason]
    looks = [*([""] * (len(texts) - 2)), f' class="text {j.effect}"', ' class="text why"']
    name = f'<th scope="row" title="{escape(m.help)}">{escape(m.name)}</th>'
    cells = zip(head[1:], looks, texts, strict=True)
    return [name, *(f'<td data-label="{escape(label)}"{look}>{escape(text)}</td>' for label, look, text in cells)]


def _curves(c: Comparison) -> Iterable[str]:
    names = dict.fromkeys(s for col in c.columns for run in col.runs.values() for s in run.series)
    if names:
        yield "<h2>Percentiles</h2>"
    for i, name in enumerate(names):
        spec = charts.percentile_curve(c, name)
        if spec is not None:
            yield _figure(f"curve-{i}", spec)
            yield _details("Numbers of this picture", _curve_table(c, name))


def _curve_table(c: Comparison, series: str) -> str:
    rows = charts.curve_rows(c, series)
    names = [column.name for column in c.columns]
    cells = {(r["variant"], r["percentile"]): r for r in rows}
    head = ["percentile", *(f"{n}, {what}" for n in names for what in ("median", "lowest", "highest"))]
    body = []
    for p in sorted({r["percentile"] for r in rows}):
        found = [cells.get((n, p), {}) for n in names]
        numbers = [value(r.get(key)) for r in found for key in ("value", "low", "high")]
        body.append([f'<th scope="row">{p:.7g}</th>', *(f"<td>{escape(x)}</td>" for x in numbers)])
    return _table(f"{series} over seeds, {c.arm_word}", head, body)


def _metrics(c: Comparison) -> Iterable[str]:
    yield "<h2>Every seed</h2>"
    for i, m in enumerate(c.metrics):
        yield f"<h3>{escape(m.metric.name)}</h3><p>{escape(m.metric.help)}</p>"
        yield _figure(f"strip-{i}", charts.strips(c, m))
        yield _details("Numbers of this picture", _sample_table(c, m))


def _sample_table(c: Comparison, m: MetricComparison) -> str:
    names = list(m.samples)
    head = ["seed", *names, *(f"{b} against {a}" for a, b in c.pairs)]
    rows = []
    for i, seed in enumerate(c.seeds):
        cells = [value(m.samples[n][i]) for n in names]
        for a, b in c.pairs:
            x, y = m.samples[a][i], m.samples[b][i]
            cells.append(percent(100 * (y - x) / abs(x)) if x and y is not None else "-")
        rows.append([f'<th scope="row">{seed}</th>', *(f"<td>{escape(t)}</td>" for t in cells)])
    return _table(f"{m.metric.name} in {m.metric.unit or 'units'}, {c.arm_word}", head, rows)


def _provenance(c: Comparison) -> str:
    machine = c.scenario.machine
    facts = {
        "arm": c.arm_word,
        "machine": f"{machine.name}: {machine.summary}" + ("" if machine.calibrated else " (uncalibrated costs)"),
        "kernels": ", ".join(f"{col.name} = {col.kernel}" for col in c.columns),
        "seeds": ", ".join(map(str, c.seeds)),
        "scenario": c.scenario.file,
        "engine": c.engine,
        **{key: str(text) for key, text in c.provenance.items()},
        "stored in": str(c.path) if c.path else "not stored",
    }
    items = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    sources = "".join(f"<li>{escape(source)}</li>" for source in machine.sources)
    costs = _details("Where the machine's numbers come from", f"<ul>{sources}</ul>") if sources else ""
    method = (
        "The unit is the seed and differences are paired. A change is the Hodges-Lehmann estimate of the paired ratio; "
        "its 95% interval is the one that Wilcoxon's signed-rank test does not reject. Equivalent: the interval lies "
        "within the margin. Each interval stands for itself: among many metrics some leave out 0 by chance."
    )
    return f"<h2>Where this comes from</h2><dl>{items}</dl>{costs}{_digests(c)}<p>{method}</p>"


def _digests(c: Comparison) -> str:
    head = ["seed", *(col.name for col in c.columns)]
    rows = []
    for seed in c.seeds:
        found = [col.runs[seed].digest if seed in col.runs else "-" for col in c.columns]
        rows.append([f'<th scope="row">{seed}</th>', *(f"<td>{digest}</td>" for digest in found)])
    caption = "The same scenario, seed and engine give the same digest"
    return _details("Digests of the traces", _table(caption, head, rows))


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, cards: bool = False) -> str:
    titles = "".join(f'<th scope="col"{_LEFT * (h in _TEXT)}>{escape(h)}</th>' for h in head)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    table = f"<table><caption>{escape(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    look = "scroll cards" if cards else "scroll"
    return f'<div class="{look}" tabindex="0" role="region" aria-label="{escape(caption)}">{table}</div>'


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def _figure(name: str, spec: charts.Spec | None) -> str:
    return "" if spec is None else figure(name, spec)
