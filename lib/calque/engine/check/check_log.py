"""The check whether the log of the source's metastore gives every guarantee, with the cure where it does not."""

from __future__ import annotations

from calque.engine.check.findings import Findings, Severity
from calque.engine.check.log_strength import LAW_1, newest_rows, weaknesses
from calque.engine.check.sides import Source, is_hive_4
from calque.errors import AccessRefused, Refused, Unavailable
from calque.ports.services import MetastoreInfo, tells_inserts


def weakness(server: MetastoreInfo) -> tuple[str, str, str] | None:
    """Return what is weak about a metastore's log, which guarantee that costs, and the cure. None for a log that gives
    every guarantee, and where the server does not say."""
    if server.version().startswith("2"):
        return (
            "The log of Hive 2 is weak: two events can get one id",
            (
                "Of changes made in one moment some can be missed until an id is seen to come twice, or the table is "
                f"read again, which costs the promise {LAW_1}"
            ),
            "Move the source to Hive 3.0 or later",
        )
    listeners = server.listeners()
    if not listeners.is_reported or listeners.transactional or (listeners.others and not listeners.afterwards):
        return None
    cure = (
        "Set metastore.transactional.event.listeners = org.apache.hive.hcatalog.listener.DbNotificationListener at the "
        "source's metastore, and start it again"
    )
    if listeners.afterwards:
        return (
            "The log is weak: events are written after their changes, not with them",
            (
                "One can be lost or come in another order, and the replica lacks the change until the table is read "
                f"again, which costs the promise {LAW_1}"
            ),
            f"{cure}; remove the listener from metastore.event.listeners",
        )
    return (
        "No listener writes the log",
        f"Changes raise no events, and nothing would be replicated, which costs the promise {LAW_1}",
        cure,
    )


def check_log(source: Source, server: MetastoreInfo, findings: Findings) -> None:
    log_weakness = weakness(server)
    listeners = server.listeners()
    if log_weakness is not None:
        what, why, todo = log_weakness
        if source.allow_weak_log:
            findings.add("source", Severity.WARNING, what, f"{why}; allow_weak_log accepts that", todo)
        else:
            findings.add("source", Severity.ERROR, what, why, f"{todo}; or accept it by source.allow_weak_log = true")
    elif listeners.transactional:
        findings.add_expected("source", "The log is written with each change (a transactional listener)")
    elif listeners.is_reported:
        names = ", ".join(listeners.others)
        todo = "Make sure that it does; then this can be left as it is"
        findings.add(
            "source",
            Severity.WARNING,
            f"It can't be known whether {names} writes events with their changes",
            "Its name is not that of Hive's own listener",
            todo,
        )
    else:
        findings.add(
            "source",
            Severity.WARNING,
            "It can't be known whether the log's listener is transactional",
            "The server does not tell its settings",
            "Look for metastore.transactional.event.listeners in its configuration",
        )
    check_inserts(source, server, findings)
    if not is_hive_4(server.version()):
        what = "The log's table may lack an index on its event ids, which Hive 4 adds"
        todo = 'See that there is one: CREATE INDEX "NOTIFICATION_LOG_EVENT_ID" ON "NOTIFICATION_LOG" ("EVENT_ID")'
        findings.add("source", Severity.INFO, what, "Each read of the log reads all of it then", todo)
    check_notifications(source, server, findings)


def check_inserts(source: Source, server: MetastoreInfo, findings: Findings) -> None:
    if tells_inserts(server) is False:
        severity = Severity.INFO if source.scans else Severity.WARNING
        todo = "Set it where statements run and at the metastore"
        todo += "" if source.scans else '; or write scan = "1m" below [source]'
        what = "hive.metastore.dml.events is off at the source"
        findings.add("source", severity, what, "INSERTs raise no events then: scans alone find them", todo)


def check_notifications(source: Source, server: MetastoreInfo, findings: Findings) -> None:
    try:
        newest = source.log.current()
        rows = newest_rows(source.log, newest)
    except AccessRefused as error:
        findings.refused("source", error)
        return
    except Unavailable as error:
        server.version()
        findings.add(
            "source",
            Severity.ERROR,
            "The log can't be read",
            f"The metastore answers other calls: {error.why}",
            "Look into the metastore's log",
        )
        return
    if newest == 0:
        findings.add(
            "source",
            Severity.WARNING,
            "The log is empty",
            "Nothing was changed since it is written, or nothing writes it",
            "Change something at the source, and check again",
        )
    else:
        findings.add_expected("source", f"The newest event is {newest}")
    for what, why, todo in weaknesses(rows, newest):
        findings.add("source", Severity.WARNING, what, why, todo)


def require_strong_log(server: MetastoreInfo) -> None:
    """Raise `Refused`, with the cure, if the metastore's log does not give every guarantee. A server that does not say
    passes. Raises `Unavailable`."""
    if log_weakness := weakness(server):
        what, why, todo = log_weakness
        raise Refused(what, why, f"{todo}; or accept it by source.allow_weak_log = true")
