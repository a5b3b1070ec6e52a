"""The reader of epochs: rows of a file come as Arrow, partition keys among the columns."""

from __future__ import annotations

from pathlib import Path

from plugins.epoch_reader.unit.test_table_files import (
    test_partition_keys_are_columns_with_their_types_and_awkward_values as rows_of_partitions,
)


def test_it_works_at_all(tmp_path: Path) -> None:
    rows_of_partitions(tmp_path)
