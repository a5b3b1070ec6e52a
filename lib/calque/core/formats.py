"""Which reader understands the files of a table or partition, and with which settings: by SerDe."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from calque.core.definition import Definition, Format
from calque.errors import Refused


class Kind(StrEnum):
    PARQUET = "parquet"
    ORC = "orc"
    JSON = "json"
    TEXT = "text"
    """Delimited lines (LazySimpleSerDe)."""
    CSV = "csv"
    """Quoted lines (OpenCSVSerde); all columns are strings."""


SERDES = {
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe": Kind.PARQUET,
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde": Kind.ORC,
    "org.apache.hadoop.hive.serde2.JsonSerDe": Kind.JSON,
    "org.apache.hive.hcatalog.data.JsonSerDe": Kind.JSON,
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe": Kind.TEXT,
    "org.apache.hadoop.hive.serde2.OpenCSVSerde": Kind.CSV,
}
TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
OF_TEXT = frozenset({Kind.JSON, Kind.TEXT, Kind.CSV})


@dataclass(frozen=True, slots=True)
class Lines:
    """How delimited lines are read; without `quote` there are no quotes, without `escape` no escapes."""

    delimiter: str
    null: str
    header: int
    quote: str = ""
    escape: str = ""


def kind_of(table: str, how: Format) -> Kind:
    """`Refused` for a SerDe that calque has no reader for."""
    kind = SERDES.get(how.serde)
    if kind is None or (kind in OF_TEXT and how.input_format != TEXT_INPUT):
        raise Refused(
            f"{table} can't be read by its files",
            f"calque has no reader for {how.serde or 'a table without a SerDe'} with {how.input_format}",
            "Read it through the metastore",
        )
    return kind


def lines_of(definition: Definition, how: Format) -> Lines:
    own, header = how.serde_parameters, int(definition.parameters.get("skip.header.line.count", "0") or 0)
    if SERDES.get(how.serde) is Kind.CSV:
        quote, escape = own.get("quoteChar", '"'), own.get("escapeChar", "\\")
        return Lines(own.get("separatorChar", ","), "", header, quote, escape)
    delimiter = character(own.get("field.delim", own.get("serialization.format", "\x01")))
    null = own.get("serialization.null.format", definition.parameters.get("serialization.null.format", "\\N"))
    return Lines(delimiter, null, header, escape=own.get("escape.delim", ""))


def character(said: str) -> str:
    """A delimiter may be given by its number."""
    return chr(int(said)) if said.isdigit() else said[:1] or "\x01"
