"""The site of these pages, which `make docs` builds with Sphinx."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

from from_code import filled

project = "calque"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = project
html_copy_source = False
html_use_index = False
html_show_copyright = False


def fill(_application: Sphinx, _page: str, text: list[str]) -> None:
    text[0] = filled(text[0])


def setup(application: Sphinx) -> None:
    application.connect("source-read", fill)
