"""The data files of the demo, written as Hive's writers do: complete under a hidden name first, then renamed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from calque.model.hive import Column, SerDe, Storage

INPUTS = "org.apache.hadoop.mapred.TextInputFormat"
OUTPUTS = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
PARQUET = "org.apache.hadoop.hive.ql.io.parquet"
FORMATS = ("parquet", "text")
WORDS = ("ash", "birch", "cedar", "elm", "fir", "Föhre", "槐", "two words", "")

Cell = int | float | str


def storage(form: str, columns: Sequence[Column], location: str | None = None) -> Storage:
    """Return the storage of a table of one of `FORMATS`. Without a location the metastore chooses one."""
    if form == "parquet":
        serde = SerDe(class_name=f"{PARQUET}.serde.ParquetHiveSerDe", parameters={"serialization.format": "1"})
        formats = f"{PARQUET}.MapredParquetInputFormat", f"{PARQUET}.MapredParquetOutputFormat"
    else:
        lazy = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
        serde = SerDe(class_name=lazy, parameters={"serialization.format": "\x01", "field.delim": "\x01"})
        formats = INPUTS, OUTPUTS
    return Storage(tuple(columns), location, *formats, compressed=False, buckets=-1, serde=serde)


def write_file(path: Path, form: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> int:
    """Write the rows so that the file appears complete at `path`, and return its size in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden_path = path.with_name(f".{path.name}.writing")
    if form == "parquet":
        _write_parquet(hidden_path, columns, rows)
    else:
        lines = ("\x01".join(str(cell) for cell in row) + "\n" for row in rows)
        hidden_path.write_text("".join(lines), encoding="utf-8")
    size = hidden_path.stat().st_size
    hidden_path.rename(path)
    return size


def some_rows(random: Random, columns: Sequence[Column], count: int) -> list[list[Cell]]:
    return [[_cell(random, column.type) for column in columns] for _ in range(count)]


def _cell(random: Random, kind: str) -> Cell:
    match kind:
        case "bigint":
            return random.randrange(1 << 40)
        case "double":
            return round(random.uniform(0, 1000), 2)
        case _:
            return random.choice(WORDS)


def _write_parquet(path: Path, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
    schema = pa.schema([(column.name, types[column.type]) for column in columns])
    arrays = [pa.array([row[index] for row in rows], field.type) for index, field in enumerate(schema)]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path)
