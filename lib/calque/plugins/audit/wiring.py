"""What the audit reads: the ledgers, journals and histories of a configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from calque.engine.sides.journal_reads import newest
from calque.plugins.audit.adapters.relations import AuditedSource, AuditedTarget, query
from calque.wiring.wiring import Wiring


def ask_audit(
    wiring: Wiring, text: str, parameters: Sequence[object], relations: Collection[str], target: str | None
) -> tuple[tuple[str, ...], Iterator[tuple[object, ...]]]:
    """The columns and rows of a statement over these relations; of one target, or of all. Raises `Refused` and
    `Unavailable`, also while rows are read."""
    names = wiring.config.own_targets() if target is None else (target,)
    targets = [wiring.target(name) for name in names]
    sources = {one.plug.source: one.source for one in targets}
    return query(
        text,
        parameters,
        relations,
        [AuditedTarget(one.plug.name, one.plug.source, one.ledger(), one.history()) for one in targets],
        [AuditedSource(name, one.journal(), one.history(), newest(one.gaps())) for name, one in sources.items()],
    )
