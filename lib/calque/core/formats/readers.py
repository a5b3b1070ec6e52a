"""Readers of tables' files: the one that understands the files of a table or partition, and its settings, by SerDe."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum

from calque.core.formats.bounded import number_of
from calque.core.formats.definition import Definition, Format
from calque.core.formats.symlinks import reads_symlinks
from calque.errors import Refused


class FileFormat(StrEnum):
    PARQUET = "parquet"
    ORC = "orc"
    JSON = "json"
    TEXT = "text"
    """Delimited lines (LazySimpleSerDe)."""
    CSV = "csv"
    """Quoted lines (OpenCSVSerde); all columns are strings."""


SERDES = {
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe": FileFormat.PARQUET,
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde": FileFormat.ORC,
    "org.apache.hadoop.hive.serde2.JsonSerDe": FileFormat.JSON,
    "org.apache.hive.hcatalog.data.JsonSerDe": FileFormat.JSON,
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe": FileFormat.TEXT,
    "org.apache.hadoop.hive.serde2.OpenCSVSerde": FileFormat.CSV,
}
TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
OF_TEXT = frozenset({FileFormat.JSON, FileFormat.TEXT, FileFormat.CSV})


@dataclass(frozen=True, slots=True)
class LineFormat:
    """The format of delimited lines: their delimiter, the text for NULL, and the number of header lines. Without
    `quote` there are no quotes, without `escape` no escapes."""

    delimiter: str
    null: str
    header: int
    quote: str = ""
    escape: str = ""


def kind_of(table: str, file_format: Format) -> FileFormat:
    """Return the format of the files, by their SerDe and input format. Raises `Refused` where calque has no reader for
    them; `table` names the table in the error."""
    kind = SERDES.get(file_format.serde)
    is_other = file_format.input_format != TEXT_INPUT if kind in OF_TEXT else reads_symlinks(file_format.input_format)
    if kind is None or is_other:
        raise Refused(
            f"{table} can't be read by its files",
            f"calque has no reader for {file_format.serde or 'a table without a SerDe'}"
            f" with {file_format.input_format}",
            "Read it through the metastore",
        )
    return kind


def lines_of(definition: Definition, file_format: Format) -> LineFormat:
    """Return the format of the lines of text or CSV files, from the parameters of the SerDe and the table."""
    own, header = file_format.serde_parameters, number_of(definition.parameters.get("skip.header.line.count", "0"))
    if SERDES.get(file_format.serde) is FileFormat.CSV:
        quote, escape = own.get("quoteChar", '"'), own.get("escapeChar", "\\")
        return LineFormat(own.get("separatorChar", ","), "", header, quote, escape)
    delimiter = character(own.get("field.delim", own.get("serialization.format", "\x01")))
    null = own.get("serialization.null.format", definition.parameters.get("serialization.null.format", "\\N"))
    return LineFormat(delimiter, null, header, escape=own.get("escape.delim", ""))


def character(text: str) -> str:
    """Return the delimiter that a parameter gives, as a character or by its number."""
    code = number_of(text, -1)
    return chr(code) if 0 <= code <= sys.maxunicode else text[:1] or "\x01"
