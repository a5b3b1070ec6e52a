"""The view of a target at one moment, read from its ledger: enough to say whether a mark is done there."""

from __future__ import annotations

from collections.abc import Callable

from calque.core.images.policies import policy_of
from calque.core.policy.admit import Admission
from calque.core.records.gap_states import dealt_with
from calque.engine.sides.journal_reads import newest
from calque.model.ledger import Epoch, TableRow
from calque.model.names import EventId, TableName
from calque.model.records import TargetPolicies, one_of
from calque.plugins.marks.core import TargetView
from calque.ports import Gaps, Ledger

Position = Callable[[Epoch | None], EventId | None]


def event_of_epoch(epoch: Epoch | None) -> EventId | None:
    return epoch.event_id if epoch is not None else None


def target_view(
    ledger: Ledger,
    gaps: Gaps | None,
    admission: Admission,
    position: Position = event_of_epoch,
    *,
    is_paused: bool = False,
) -> TargetView:
    """Read the target's view. `admission` is of the policy that the target is to have now; `position` returns the
    target's position from its newest epoch."""
    # The order of these reads matters. A table that an epoch takes from the live ones gets its new state before the
    # epoch is published; and behind a gap the rows of all tables are written before the record that says the gap is
    # dealt with.
    reached = position(ledger.last_epoch())
    records = ledger.records()
    rows = {row.name: row for row in ledger.tables().values() if isinstance(row, TableRow)}
    policies = one_of(records, TargetPolicies)
    recorded = [Admission(policy_of(terms, admission.policy)) for terms in (policies.policies if policies else ())]

    def has_new_policy(name: TableName) -> bool:
        return any(one.takes(name) and differs(one, admission, name) for one in recorded)

    return TargetView(
        admission.policy.target,
        reached,
        rows,
        lambda name: admission.takes(name) and admission.subset.predicate(name) is None,
        has_new_policy,
        is_paused,
        behind_gap=dealt_with(records) < newest(gaps),
        definitions_only=lambda name: not admission.copies(name),
    )


def differs(before: Admission, now: Admission, name: TableName) -> bool:
    """Tell whether the policy `now` puts the table elsewhere than `before`, or gives it other files or partitions."""
    return now.takes(name) and (
        before.name_at_target(name) != now.name_at_target(name)
        or before.copies(name) is not now.copies(name)
        or before.subset.predicate(name) != now.subset.predicate(name)
        or before.subset.where != now.subset.where
    )
