"""How the processes that Spark starts open the log and the journal. Little is imported: each query starts several."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calque.ports import EventLog, EvidenceStore, Journal


def open_log(uris: str) -> EventLog:
    """The notification log behind a comma-separated list of addresses."""
    from calque.adapters.metastore.client import Client
    from calque.adapters.metastore.log import HiveLog

    return HiveLog(Client(uris))


STATE_OPTIONS = "CALQUE_STATE_SECRETS"
"""The environment variable that carries the options of the state's tables: arguments of streams are shown in plans."""


def open_journal(tables: str) -> tuple[Journal, EvidenceStore]:
    """The journal and the evidence in the folder of the state's tables, reached by the options that `hand_down` left in
    this process's environment."""
    from calque.adapters.delta.evidence import DeltaEvidence
    from calque.adapters.delta.journal import DeltaJournal

    options = json.loads(os.environ.get(STATE_OPTIONS, "{}"))
    return DeltaJournal(f"{tables}/journal", options), DeltaEvidence(f"{tables}/evidence", options)


def hand_down(options: Mapping[str, str]) -> None:
    """Leave delta-rs's options for `open_journal` in the environment of this process and of those that it starts."""
    if options:
        os.environ[STATE_OPTIONS] = json.dumps(dict(options))
    else:
        os.environ.pop(STATE_OPTIONS, None)
