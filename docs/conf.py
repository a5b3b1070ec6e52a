"""The settings of Sphinx, with which `make docs` builds a site of these pages."""

from __future__ import annotations

project = "calque"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = project
html_copy_source = False
html_use_index = False
html_show_copyright = False
