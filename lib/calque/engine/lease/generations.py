"""Generations of a lease as objects of the target's own metastore: the port `Leases` over any catalog.

A generation is a view in calque's own database: a view has no directory, and making one whose name exists fails on
every metastore. Its name says which target it is for, and its number; its parameters say which writer has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property

from calque.core.records.lease import lease_subject, subject_digest
from calque.engine.sides.calque_database import ensure_own_database, own_view
from calque.errors import Broken
from calque.model.hive import Table
from calque.model.lease import Generation, Writer
from calque.model.names import OURS, TableName
from calque.ports import Catalog, Conflict

PARAMETER = "calque.lease."
TRIES = 5


class CatalogLeases:
    """The generations of the lease on `target` of the source, whose files lie in `warehouse`
    (`core.records.lease.lease_subject`). `first_place` gives the spelling under which that directory was marked first;
    it is called once, when the lease is first looked at."""

    def __init__(
        self, catalog: Catalog, source: str, target: str, warehouse: str, first_place: Callable[[str], str] = str
    ) -> None:
        self._catalog, self._source, self._target, self._warehouse = catalog, source, target, warehouse
        self._first_place = first_place

    @cached_property
    def _of(self) -> str:
        return lease_subject(self._source, self._target, self._first_place(self._warehouse))

    @cached_property
    def _prefix(self) -> str:
        return f"{OURS}_lease_{subject_digest(self._of)}_"

    def newest(self) -> Generation | None:
        torn = 0
        while numbers := self._numbers():
            number = max(numbers)
            table = self._catalog.table(self._name(number))
            if table is None:
                continue
            try:
                return generation_of(number, table.parameters or {})
            except Broken:
                # A read in the moment of a renewal may be of neither the old object nor the new one.
                torn += 1
                if torn == TRIES:
                    raise
        return None

    def take(self, generation: Generation) -> None:
        table = self._table(generation)
        try:
            self._catalog.create_table(table)
        except Conflict:
            if self._catalog.database(OURS) is not None:
                raise
            ensure_own_database(self._catalog, self._warehouse)
            self._catalog.create_table(table)

    def renew(self, generation: Generation) -> None:
        self._catalog.alter_table(self._name(generation.number), self._table(generation))

    def forget(self, below: int) -> None:
        for number in self._numbers():
            if number < below:
                with suppress(Conflict):
                    self._catalog.drop_table(self._name(number))

    def _numbers(self) -> list[int]:
        names = [name for name in self._catalog.tables(OURS) if name.startswith(self._prefix)]
        return [int(name.removeprefix(self._prefix)) for name in names]

    def _name(self, number: int) -> TableName:
        return TableName(OURS, f"{self._prefix}{number}")

    def _table(self, generation: Generation) -> Table:
        parameters = {f"{PARAMETER}of": self._of, **parameters_of(generation)}
        return own_view(self._name(generation.number), parameters)


def parameters_of(generation: Generation) -> dict[str, str]:
    writer = generation.writer
    values = {
        "writer": writer.id,
        "host": writer.host,
        "pid": str(writer.pid),
        "state": writer.state,
        "proof": writer.proof,
        "seconds": repr(generation.seconds),
        "renewals": str(generation.renewals),
        "released": "true" if generation.released else "false",
        "ledger": generation.ledger,
        "epoch": str(generation.epoch),
    }
    return {f"{PARAMETER}{key}": value for key, value in values.items()}


def generation_of(number: int, parameters: Mapping[str, str]) -> Generation:
    """Return the generation with these parameters. Raises `Broken` if they are not what `parameters_of` gives."""
    values = {key.removeprefix(PARAMETER): value for key, value in parameters.items() if key.startswith(PARAMETER)}
    try:
        # Some databases keep no empty texts.
        writer = Writer(
            values["writer"], values["host"], int(values["pid"]), values["state"], values.get("proof") or ""
        )
        seconds, renewals = float(values["seconds"]), int(values["renewals"])
        ledger, epoch = values.get("ledger") or "", int(values.get("epoch") or 0)
    except (KeyError, ValueError) as error:
        raise Broken(
            f"Generation {number} of the lease can't be read",
            f"{OURS} holds it with {error}",
            "Stop every writer of this target, drop it, and start one",
        ) from error
    return Generation(number, writer, seconds, renewals, values.get("released") == "true", ledger, epoch)
