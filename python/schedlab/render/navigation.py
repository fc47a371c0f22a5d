"""The contents of a page: a link to each section, and the places that these links lead to."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SECTION = re.compile(r"<h2>(.*?)</h2>")
FEWEST = 3
"""A page with fewer sections needs no contents."""


def navigation(body: Iterable[str]) -> tuple[str, list[str]]:
    """The list of links, empty for a short page, and the body with an id at each heading of a section."""
    titles: list[str] = []

    def named(found: re.Match[str]) -> str:
        titles.append(found[1])
        return f'<h2 id="section-{len(titles)}">{found[1]}</h2>'

    parts = [_SECTION.sub(named, part) for part in body]
    if len(titles) < FEWEST:
        return "", parts
    links = "".join(f'<a href="#section-{i}">{title}</a>' for i, title in enumerate(titles, 1))
    return f'<nav aria-label="Sections of this page">{links}</nav>', parts
