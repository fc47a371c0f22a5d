"""Configuration of the documentation site: `make docs` writes it to out/docs, warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

project = "schedlab"
author = "the schedlab developers"
html_title = "schedlab"
copyright = f"2026, {author}"

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
# Every relative link must resolve: to a page of the site, or to a file of the repository (which becomes a download).
suppress_warnings: list[str] = []
nitpicky = False

autodoc_typehints = "signature"
autodoc_member_order = "bysource"

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sphinx = False
