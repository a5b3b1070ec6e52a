"""The configuration file: read whole, checked whole, before anything is connected.

`load` gives a `Config`: plugs, which are sources and targets, and what all of them share. `units` has durations, sizes
and percentages; `places` paths and addresses; `secret_keys` references to secrets; `keys` the sections and what each
key takes; `plugs` what sections plug in; `conflicts` what keys say against each other; `lines` where a key stands;
`reader` puts them together and words what is wrong.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calque.config.plugs import Config
    from calque.config.reader import load

__all__ = ["Config", "load"]
FOUND_IN = {"Config": "plugs", "load": "reader"}


def __getattr__(name: str) -> object:
    """Load `Config` or `load` when it is asked for: a command that a running process answers reads no configuration."""
    from importlib import import_module

    if name in FOUND_IN:
        return getattr(import_module(f"calque.config.{FOUND_IN[name]}"), name)
    raise AttributeError(f"module 'calque.config' has no attribute {name!r}")
