"""How the processes that Spark starts open the log and the journal. Little is imported: each query starts several."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calque.ports import EventLog, EvidenceStore, Journal


def open_log(uris: str) -> EventLog:
    """The notification log behind a comma-separated list of addresses."""
    from calque.adapters.metastore.client import Client
    from calque.adapters.metastore.log import HiveLog

    return HiveLog(Client(uris))


def open_journal(state: str) -> tuple[Journal, EvidenceStore]:
    """The journal and the evidence in a state folder."""
    from calque.adapters.delta.evidence import DeltaEvidence
    from calque.adapters.delta.journal import DeltaJournal

    return DeltaJournal(f"{state}/journal"), DeltaEvidence(f"{state}/evidence")
