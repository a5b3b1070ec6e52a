"""The comparison of an export with an existing table: do the contents of the export fit into the table?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from calque.core.images.image import is_parked
from calque.model.hive import Column, Table, is_partitioned
from calque.model.names import partition_values


def difference(exported: Table, existing: Table) -> str:
    """Return the first difference that would make the two tables' data be read differently, as the end of a sentence;
    an empty text where the tables fit."""
    return next(differences(exported, existing), "")


def differences(exported: Table, existing: Table) -> Iterator[str]:
    for what, of_export, of_table in (
        ("columns", columns_of(exported), columns_of(existing)),
        ("partition keys", texts(exported.partition_keys), texts(existing.partition_keys)),
    ):
        if of_export != of_table:
            yield f"the export has {what} ({', '.join(of_export)}), the table ({', '.join(of_table)})"
    one, other = exported.storage, existing.storage
    if one is None or other is None:
        yield "one of them has no storage"
        return
    formats = (
        ("input format", one.input_format, other.input_format),
        ("output format", one.output_format, other.output_format),
        ("SerDe", one.serde and one.serde.class_name, other.serde and other.serde.class_name),
        ("bucket columns", one.bucket_columns or (), other.bucket_columns or ()),
    )
    for what, exported_format, format_there in formats:
        if exported_format != format_there:
            yield f"the export has {what} {exported_format or 'none'}, the table {format_there or 'none'}"


def columns_of(table: Table) -> list[str]:
    return texts(table.storage.columns if table.storage else ())


def texts(columns: Sequence[Column] | None) -> list[str]:
    return [f"{column.name.lower()} {column.type.lower()}" for column in columns or ()]


def chosen_partitions(table: Table, names: Sequence[str], spec: Mapping[str, str]) -> list[str]:
    """Return the names among `names` of partitions that have the values of `spec`; all names where `spec` is empty."""
    keys = [column.name.lower() for column in table.partition_keys or ()]
    wanted = {key.lower(): value for key, value in spec.items()}
    return [name for name in names if wanted.items() <= dict(zip(keys, partition_values(name), strict=True)).items()]


def unknown_key(table: Table, spec: Mapping[str, str]) -> str:
    """Return a key of `spec` that the table is not partitioned by; an empty text where there is none."""
    keys = {column.name.lower() for column in table.partition_keys or ()} if is_partitioned(table) else set()
    return next((key for key in spec if key.lower() not in keys), "")


def plain_parameters(parameters: Mapping[str, str] | None) -> dict[str, str]:
    """Return the parameters without those that mark an object as a replica, or that would make a metastore act on the
    object by itself."""
    return {
        key: value
        for key, value in (parameters or {}).items()
        if not key.startswith("calque.") and not is_parked(key) and key.upper() != "EXTERNAL"
    }
