"""The write of a DataFrame into a partitioned table, with a mark of the set once it has succeeded."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal

from calque.errors import Refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_within(
    marking: AbstractContextManager[None], frame: DataFrame, table: str, mode: Literal["append", "overwrite"]
) -> None:
    """Insert the frame's rows into the table. The context `marking` is entered before the write, and left when it has
    succeeded or raised. Raises what Spark raises, what `marking` raises, and `Refused` for an unknown mode."""
    if mode not in ("append", "overwrite"):
        raise Refused(f'"{mode}" is no mode', "Rows are appended, or overwrite partitions", "Write append or overwrite")
    session = frame.sparkSession
    with marking:
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
