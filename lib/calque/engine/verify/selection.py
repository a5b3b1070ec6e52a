"""The selection of the objects that are verified: those that the policy takes and the patterns choose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from calque.core.images.compare import DATABASE, FUNCTION, TABLE
from calque.core.policy.patterns import chosen, covers, parse_pattern
from calque.engine.sides.sides import SourceSide, TargetSide
from calque.engine.verify.report import VerifiedObject
from calque.model.ledger import StateRow, state_key
from calque.model.names import TableName, table_name


class Selection:
    """The objects that the policy takes and the patterns choose; without patterns all that it takes."""

    def __init__(self, side: TargetSide, tables: Sequence[str]) -> None:
        self.side = side
        self.is_chosen = chosen(tables)
        self.patterns = [parse_pattern(text) for text in tables]

    def takes(self, verified_object: VerifiedObject) -> bool:
        admission, name = self.side.admission, verified_object.name
        match verified_object.kind:
            case "table":
                return admission.takes(name) and self.is_chosen(name)
            case "function":
                return admission.takes_function(name) and self.is_chosen(name)
            case _:
                covered = not self.patterns or any(covers(pattern, name.database) for pattern in self.patterns)
                return covered and admission.takes_database(name.database)

    def list(self, source: SourceSide, rows: Iterable[StateRow]) -> list[VerifiedObject]:
        """Return the databases, then the tables, then the functions that are at the source, at the target, or in the
        ledger (the `rows`)."""
        objects = {VerifiedObject(state_key(row)[0], row.name) for row in rows}
        objects |= set(self.at_source(source)) | set(self.at_target())
        kinds = (DATABASE, TABLE, FUNCTION)
        selected_objects = [
            verified_object
            for verified_object in objects
            if verified_object.kind in kinds and self.takes(verified_object)
        ]
        return sorted(
            selected_objects, key=lambda verified_object: (kinds.index(verified_object.kind), verified_object.name)
        )

    def at_source(self, source: SourceSide) -> Iterator[VerifiedObject]:
        for database in source.catalog.databases():
            if self.side.admission.touches_database(database):
                yield VerifiedObject(DATABASE, table_name(database))
                for table in source.catalog.tables(database):
                    yield VerifiedObject(TABLE, table_name(database, table))
                if self.side.admission.takes_database(database):
                    for function in source.catalog.functions(database):
                        yield VerifiedObject(FUNCTION, table_name(database, function))

    def at_target(self) -> Iterator[VerifiedObject]:
        admission = self.side.admission
        for name in admission.tables:
            yield VerifiedObject(TABLE, name)
        for target_database in self.side.catalog.databases():
            source_database = admission.source_of(TableName(target_database))
            if source_database is not None:
                yield VerifiedObject(DATABASE, source_database)
                for table in self.side.catalog.tables(target_database):
                    source_name = admission.source_of(table_name(target_database, table))
                    if source_name is not None:
                        yield VerifiedObject(TABLE, source_name)
