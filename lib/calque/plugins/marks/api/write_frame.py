"""Write a DataFrame into a partitioned table, and mark the set when the write has succeeded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from calque.errors import Refused
from calque.plugins.marks.api.functions import Partition, after

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write(
    frame: DataFrame,
    config: str | Path,
    table: str,
    /,
    mark: Partition,
    mode: Literal["append", "overwrite"] = "append",
) -> None:
    """Insert the frame's rows into the table, which Spark knows by that name, columns by name, partitions as the rows
    say (dynamic partitions); then mark the set of the partitions that match `mark`. With `overwrite` each partition of
    which there is a row has only these rows then. Where the write fails, nothing is marked.

    Raises what Spark raises, and what `mark` raises."""
    if mode not in ("append", "overwrite"):
        raise Refused(f'"{mode}" is no mode', "Rows are appended, or overwrite partitions", "Write append or overwrite")
    session = frame.sparkSession
    with after(config, table, mark):
        columns = session.table(table).columns
        settings = {"hive.exec.dynamic.partition": "true", "hive.exec.dynamic.partition.mode": "nonstrict"}
        before = {key: session.conf.get(key, None) for key in settings}
        for key, value in settings.items():
            session.conf.set(key, value)
        try:
            writer = frame.select(*columns).write.option("partitionOverwriteMode", "dynamic")
            writer.insertInto(table, overwrite=mode == "overwrite")
        finally:
            for key, old in before.items():
                session.conf.unset(key) if old is None else session.conf.set(key, old)
