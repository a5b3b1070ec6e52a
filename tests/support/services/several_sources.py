"""One process over several sources: the files of the arguments, each with a source of its own, as one configuration.

A file holds one source. What takes up several is made of plugs, as here: the first source has the state folder's own
places, the others theirs beside them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from calque.app import APP
from calque.config import Config
from calque.model.state_places import SourcePlaces
from calque.streams.job import run_job


def together(files: Sequence[Path]) -> Config:
    """Their plugs over the first one's state."""
    configs = [APP.load(file) for file in files]
    first, *others = configs
    sources = dict(first.sources)
    for config in others:
        sources |= {name: replace(plug, places=SourcePlaces(name)) for name, plug in config.sources.items()}
    targets = {name: plug for config in configs for name, plug in config.targets.items()}
    return replace(first, sources=sources, targets=targets)


if __name__ == "__main__":
    config = together([Path(argument) for argument in sys.argv[1:]])
    sys.exit(run_job(APP.wiring(config), tuple(config.targets), "head", threading.Event()))
