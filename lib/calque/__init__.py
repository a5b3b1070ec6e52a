"""calque: a streaming replicator for Hive-metastore warehouses.

Read it from the bottom: `model` has the nouns, `core` decides (pure functions), `ports` says what the engine needs of
the world, `engine` acts through ports, `adapters` plug real systems in, `wiring` joins them by the configuration,
`streams` runs it all as Structured Streaming queries, `cli` is the way in. DECISIONS.md says why.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("calque")
except PackageNotFoundError:
    __version__ = "0"
