"""Names in the form that metastores keep: the fields whose text a server stores in lower case.

A message may have a name as the client wrote it or as the server keeps it; lists and reads have it as it is kept.
Measured, "kept" is lower case:

| name | message of its creation | messages of alterations, behind | other messages | lists and reads |
|---|---|---|---|---|
| database | written | kept | kept, its partitions' own written | kept |
| table | 3.1: written, 4.x: kept | written | kept, its partitions' own written | kept |
| column, partition key, sort column | written | written | kept | kept |
| constraint, its columns and tables | 3.1: written, 4.x: kept | | DROP: written | kept |
| function | written | | kept | 3.1: written, 4.x: kept |
| column of statistics | kept | | kept | kept |
| bucket and skewed column, field of a struct, value of a partition, key of a parameter | written everywhere | | | |

3.1 lists a function as it was written and finds it under no name; `get_all_functions` has it.

So the lower-case name is the server's in every message, for the fields in `LOWERED`. A partition is its list of values;
`partition_name` gives the empty value and the default partition one name, and no server keeps two of one name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from calque.model import facets, hive

OF_CONSTRAINTS = frozenset({"database", "table", "column", "name"})
LOWERED: Mapping[type, frozenset[str]] = MappingProxyType(
    {
        hive.Database: frozenset({"name"}),
        hive.Table: frozenset({"name", "database"}),
        hive.Partition: frozenset({"database", "table"}),
        hive.Column: frozenset({"name"}),
        hive.SortColumn: frozenset({"column"}),
        hive.Function: frozenset({"name", "database"}),
        facets.PrimaryKey: OF_CONSTRAINTS,
        facets.ForeignKey: OF_CONSTRAINTS | {"parent_database", "parent_table", "parent_column", "parent_key"},
        facets.UniqueKey: OF_CONSTRAINTS,
        facets.NotNull: OF_CONSTRAINTS,
        facets.DefaultValue: OF_CONSTRAINTS,
        facets.Check: OF_CONSTRAINTS,
        facets.AnalyzedObject: frozenset({"database", "table"}),
        facets.ColumnStatistics: frozenset({"column"}),
    }
)
"""Fields of the model's objects that servers keep in lower case. All other text is kept as it was written."""


def is_lowered(cls: type, field: str) -> bool:
    """Tell whether servers keep the field of the model's class `cls` in lower case."""
    return field in LOWERED.get(cls, ())
