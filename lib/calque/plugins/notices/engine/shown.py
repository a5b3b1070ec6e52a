"""The tables of a target at an epoch, read from its ledger."""

from __future__ import annotations

from collections.abc import Collection

from calque.core.records.contents import contents, line_of
from calque.model.names import TableName
from calque.plugins.notices.core.from_ledger import Before, ShownTables, known
from calque.ports import Ledger


def shown_tables(ledger: Ledger, epoch: int) -> ShownTables:
    """Return the tables that the target showed at that epoch; none for epoch 0, which stands for the time before the
    first."""
    if not epoch:
        return ShownTables({})
    tables = contents(line_of(index, row) for index, row in enumerate(ledger.headers(epoch)))
    return ShownTables({name: content.incarnation for name, content in tables.items()})


def tables_before(ledger: Ledger, names: Collection[TableName], epoch: int) -> Before:
    """Return what the named tables had at the epoch before `epoch`. Names that the target did not show then are left
    out."""
    if not names or epoch <= 1:
        return {}
    headers = contents(line_of(index, row) for index, row in enumerate(ledger.headers(epoch - 1)))
    shown_names = [name for name in names if name in headers]
    earlier_names = {line.name for name in shown_names for line in headers[name].table.history}
    if not shown_names:
        return {}
    rows = ledger.rows_of({*shown_names, *earlier_names}, epoch - 1)
    tables = contents(line_of(index, row) for index, row in enumerate(rows))
    return {name: known(tables[name], rows) for name in shown_names if name in tables}
