"""Files that stay as they are."""

from __future__ import annotations


class Unfit(Exception):
    """Why files can't be combined."""
