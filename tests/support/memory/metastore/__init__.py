"""A whole metastore in dictionaries: `store` is its state and its writers' calls, `transactions` those of its ACID
tables; `catalog` and `transaction_ports` are the ports on it."""

from support.memory.metastore.catalog import DELTA_LIKE, GLUE_LIKE, MemoryCatalog, MemoryLog, MemoryReader
from support.memory.metastore.habits import HIVE_3, HIVE_4, ServerHabits
from support.memory.metastore.store import Directories, MemoryMetastore
from support.memory.metastore.transaction_ports import MemoryReplicatedTransactions, MemoryTransactionReader

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
    "MemoryReplicatedTransactions",
    "MemoryTransactionReader",
    "ServerHabits",
]
