"""calque: a streaming replicator for Hive-metastore warehouses.

Read it from the bottom: `model` has the nouns, `core` decides (pure functions), `ports` says what the engine needs of
the world, `engine` acts through ports, `adapters` plug real systems in, `wiring` joins them by the configuration,
`streams` runs it all as Structured Streaming queries, `cli` is the way in. DECISIONS.md says why.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

try:
    __version__ = version("calque-replicator")
except PackageNotFoundError:
    __version__ = "0"

if TYPE_CHECKING:
    from calque import clusters, done
    from calque.adapters.spark.delta_jars import delta_jars
    from calque.dbapi import connect
    from calque.epoch_source import EpochSource
    from calque.reading import OpenEpoch, open_epoch, version_at
    from calque.statements.dbapi import (
        Connection,
        Cursor,
        DatabaseError,
        DataError,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        NotSupportedError,
        OperationalError,
        ProgrammingError,
        Warning,  # noqa: A004 - PEP 249's
        apilevel,
        paramstyle,
        threadsafety,
    )

__all__ = [
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "EpochSource",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OpenEpoch",
    "OperationalError",
    "ProgrammingError",
    "Warning",
    "__version__",
    "apilevel",
    "clusters",
    "connect",
    "delta_jars",
    "done",
    "open_epoch",
    "paramstyle",
    "threadsafety",
    "version_at",
]
FOUND_IN = {
    "EpochSource": "epoch_source",
    "OpenEpoch": "reading",
    "connect": "dbapi",
    "delta_jars": "adapters.spark.delta_jars",
    "open_epoch": "reading",
    "version_at": "reading",
}


def __getattr__(name: str) -> object:
    """Load a public name when it is asked for: `open_epoch`, `connect`, `clusters`, `done` and what belongs to them."""
    from importlib import import_module

    if name in ("clusters", "done"):
        return import_module(f"calque.{name}")
    if name in FOUND_IN:
        return getattr(import_module(f"calque.{FOUND_IN[name]}"), name)
    if name in __all__:
        from calque.statements import dbapi

        return getattr(dbapi, name)
    raise AttributeError(f"module 'calque' has no attribute {name!r}")
