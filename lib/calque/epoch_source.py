"""Epochs as a source of data for Spark, `format("calque")`, for batches and for streams.

A program registers it with its session:

    spark.dataSource.register(calque.EpochSource)

A table as of an epoch. Executors must reach the configuration, the ledger and the warehouse; the epoch is held for an
hour:

    spark.read.format("calque").option("target", "dr").option("event", 812).load("sales.orders")

What epochs changed, a row for each change of a table or partition (`plugins.epoch_reader.core.changes.SCHEMA`): epoch
after epoch, or one epoch. Executors must reach the ledger:

    spark.readStream.format("calque").option("ledger", "…/ledgers/dr").option("startingEpoch", "latest").load()
    spark.read.format("calque").option("ledger", "…/ledgers/dr").option("epoch", 17).load()

`plugins.epoch_reader.api.source_options` has all options.
"""

# ruff: noqa: N802, ARG002  (names and arguments are Spark's)
from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from calque.errors import Refused
from calque.plugins.epoch_reader.api.change_stream import EpochChangesReader, EpochStreamReader
from calque.plugins.epoch_reader.api.source_options import Use, address_of, change_options, table_in
from calque.plugins.epoch_reader.api.spark_source import EpochReader, opened
from calque.plugins.epoch_reader.core.changes import SCHEMA

if TYPE_CHECKING:
    from calque.wiring.wiring import Wiring


def wired(config: str) -> Wiring:
    # Not above: a stream of changes needs no configuration, nor what reads one.
    from calque.app import APP

    return APP.wiring(APP.load(config))


class EpochSource(DataSource):
    """The data source `format("calque")`: a table of a target as of an epoch, or the changes of epochs. Raises what
    `open_epoch` raises, and `Refused` for options that mean nothing."""

    @classmethod
    def name(cls) -> str:
        return "calque"

    def schema(self) -> StructType:
        if table_in(self.options):
            with opened(self.options, wired, None, holds=False) as epoch:
                return from_arrow_schema(epoch.arrow(table_in(self.options)).schema)
        change_options(self.options, Use.EPOCH, Use.STREAM)
        return from_arrow_schema(SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        if table_in(self.options):
            return EpochReader(dict(self.options), wired)
        return EpochChangesReader(address_of(self.options, wired), change_options(self.options, Use.EPOCH))

    def simpleStreamReader(self, schema: StructType) -> EpochStreamReader:
        if table := table_in(self.options):
            raise Refused(
                f"The table {table} can't be read as a stream",
                "A stream has what epochs changed, not rows of tables",
                f'Write load() with the option tables = "{table}"',
            )
        return EpochStreamReader(address_of(self.options, wired), change_options(self.options, Use.STREAM))
