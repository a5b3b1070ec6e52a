"""A warehouse that keeps changing, for the demo and for tests.

`Source` changes a metastore and its files and knows what each table should hold; `create_sample` fills one; `Writer`
picks changes at random. All of it works with any `HiveClient` and folder. `run` puts the demo together from it, real
metastores and `calque run`; `progress` shows it.
"""

from calque.demo.demo.source import Source
from calque.demo.demo.warehouse import create_sample
from calque.demo.demo.writer import Step, Writer

__all__ = ["Source", "Step", "Writer", "create_sample"]
