"""A chart in an HTML page: a static picture, and its specification, which is drawn live where scripts run."""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape as html_escape
from pathlib import Path
from typing import Any

from schedlab import plain

_CLIP = re.compile(r'(id="|url\(#)(clip\d+)')
_EXPORTS = "window.vegaEmbed = vegaEmbed;"
_LIVE = Path(__file__).parent / "page.js"


def figure(name: str, spec: dict[str, Any]) -> str:
    """The chart as an element of the page; `name` is unique in it."""
    import vl_convert

    still = vl_convert.vegalite_to_svg({**spec, "config": {**spec["config"], "aria": False}})
    still = _CLIP.sub(rf"\1{name}-\2", still)  # ids are unique in the page, those of the live pictures included
    still = still.replace("<svg ", '<svg aria-hidden="true" ', 1)
    data = json.dumps(spec, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    label = html_escape(plain.escaped(spec["description"]))
    return (
        f'<figure><div id="{name}" role="img" aria-label="{label}">{still}</div>'
        f'<script type="application/json" data-chart="{name}">{data}</script></figure>'
    )


def scripts() -> list[str]:
    """What draws the charts of a page, at its end."""
    return [
        f"<script>{_bundle()}</script>",
        f'<script type="module">{_LIVE.read_text(encoding="utf-8")}</script>',
    ]


@cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed in one piece."""
    import vl_convert

    return str(vl_convert.javascript_bundle(_EXPORTS)).replace("</script", "<\\/script")
