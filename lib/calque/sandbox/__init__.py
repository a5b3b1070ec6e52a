"""Real services for the demo and the tests, on 127.0.0.1 and ports that the system chooses.

`Metastore.start(MetastoreSettings(version="3.1.3"), directory)` runs a real Hive metastore with its notification log
and change manager, `Broker.start(directory)` a Kafka broker, `Hdfs.start(directory)` an HDFS of three processes,
`SchemaRegistry.start(directory)` a registry that speaks Confluent's protocol. What they need is put into a cache once:
for the demo by `python -m calque.sandbox.install` (`make install` does it), for tests by the same with `tests` behind
it (`make install-tests`). Each service runs under a keeper, so nothing outlives the process that started it, however
that one ends.
"""

from calque.resources import cache_folder
from calque.sandbox.broker import Broker, Cluster
from calque.sandbox.hdfs import Hdfs
from calque.sandbox.hive_settings import MetastoreSettings
from calque.sandbox.metastore import Metastore
from calque.sandbox.objects import ObjectStore
from calque.sandbox.registry import SchemaRegistry
from calque.sandbox.spark import spark_jars

__all__ = [
    "Broker",
    "Cluster",
    "Hdfs",
    "Metastore",
    "MetastoreSettings",
    "ObjectStore",
    "SchemaRegistry",
    "cache_folder",
    "spark_jars",
]
