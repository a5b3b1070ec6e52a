"""Metastores that the tests of a process share, each started when it is first asked for.

Tests keep apart by the names of their databases: a `Deployment` takes the next of `deployments.NUMBERS`, others have
names of their own. Whoever stops a server, changes its log by hand, or needs one that is new, starts it himself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from calque.sandbox import Metastore, MetastoreSettings

SETTINGS = {
    "source-3": MetastoreSettings(version="3.1.3"),
    "target-3": MetastoreSettings(version="3.1.3"),
    "source-4": MetastoreSettings(version="4.2.0"),
    "target-4": MetastoreSettings(version="4.2.0"),
    "stock-4": MetastoreSettings(version="4.2.0", stock=True),
}
Shared = Callable[..., Mapping[str, Metastore]]
"""The servers of these names of `SETTINGS`, by name."""


@contextmanager
def shared_servers(folder: Callable[[str], Path]) -> Iterator[Shared]:
    """Each lies in the folder of its name."""
    started: dict[str, Metastore] = {}

    def servers(*names: str) -> Mapping[str, Metastore]:
        missing = [name for name in names if name not in started]
        # pytest's folders are made here: its first one is made anew by each thread that asks.
        folders = [folder(name) for name in missing]
        with ThreadPoolExecutor(max(1, len(missing))) as pool:
            settings = [SETTINGS[name] for name in missing]
            started.update(zip(missing, pool.map(Metastore.start, settings, folders), strict=True))
        return {name: started[name] for name in names}

    try:
        yield servers
    finally:
        for server in started.values():
            server.stop()
