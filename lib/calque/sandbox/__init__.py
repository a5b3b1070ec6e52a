"""Real services for the demo and the tests, on 127.0.0.1 and ports that the system chooses.

`Metastore.start(MetastoreSettings(version="3.1.3"), directory)` runs a real Hive metastore with its notification log
and change manager, `Broker.start(directory)` a Kafka broker. What they need is put into a cache once, by
`python -m calque.sandbox.install` (`make install` does it). Each service runs under a keeper, so nothing outlives the
process that started it, however that one ends.
"""

from calque.adapters.spark.delta_jars import delta_jars as spark_jars
from calque.resources import cache_folder
from calque.sandbox.broker import Broker, Cluster
from calque.sandbox.hive_settings import MetastoreSettings
from calque.sandbox.metastore import Metastore

__all__ = [
    "Broker",
    "Cluster",
    "Metastore",
    "MetastoreSettings",
    "cache_folder",
    "spark_jars",
]
