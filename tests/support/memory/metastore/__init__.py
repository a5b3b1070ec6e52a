"""A whole metastore in dictionaries: `store` is its state and its writers' calls, `catalog` the ports on it."""

from support.memory.metastore.catalog import DELTA_LIKE, GLUE_LIKE, MemoryCatalog, MemoryLog, MemoryReader
from support.memory.metastore.habits import HIVE_3, HIVE_4, ServerHabits
from support.memory.metastore.store import Directories, MemoryMetastore

__all__ = [
    "DELTA_LIKE",
    "GLUE_LIKE",
    "HIVE_3",
    "HIVE_4",
    "Directories",
    "MemoryCatalog",
    "MemoryLog",
    "MemoryMetastore",
    "MemoryReader",
    "ServerHabits",
]
