"""The optional package that is needed to keep history."""

from __future__ import annotations

from calque.config.extras import Extra
from calque.config.plugs import Config


def history(config: Config) -> str:
    return "[state] history" if config.state.history else ""


AUDIT = Extra(name="audit", modules=("duckdb",), needed=history)
