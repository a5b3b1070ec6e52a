"""Questions of `calque done`, which a running process answers for the command where it can."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calque.control.asking import error_document, error_of
from calque.core.policy.patterns import named_table
from calque.errors import CalqueError, Refused
from calque.plugins.marks.api.rows import set_row, verdict_row
from calque.plugins.marks.api.sets import DoneSets, NotDoneInTime, outside, undone
from calque.plugins.marks.core import Done, NotDone, OutsidePolicy, Verdict
from calque.plugins.marks.model import condition_of
from calque.wiring.wiring import Wiring


def done_mark(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
    """Mark the set, and return its row."""
    sets, table = opened(wiring), named_table(arguments["table"])
    return set_row(sets.mark(table, arguments["values"]), table)


def done_list(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
    """Return the rows of the sets of the table, or of all tables where it is None."""
    table = arguments["table"]
    found = opened(wiring).marks(named_table(table) if table is not None else None, arguments["target"])
    return [set_row(done.mark, done.table) for done in found]


def done_check(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
    """Return whether the set is done: the row, what people are told, and the error of a set that is not done."""
    sets, table = opened(wiring), named_table(arguments["table"])
    partition = sets.question(table, arguments["values"], arguments["target"])
    return answer(table, partition, arguments["target"], sets.judge(arguments["target"]).verdict(table, partition))


def done_wait(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
    """Wait for at most `seconds` until the set is done (None: for ever), and return what `done_check` does. `timeout`
    are the seconds that the error names."""
    sets, table = opened(wiring), named_table(arguments["table"])
    values, target = arguments["values"], arguments["target"]
    try:
        verdict = sets.wait(table, values, target, arguments["seconds"], arguments["timeout"])
    except NotDoneInTime as late:
        return {"row": None, "said": "", "error": error_document(late)}
    return answer(table, sets.question(table, values, target), target, verdict)


def opened(wiring: Wiring) -> DoneSets:
    wiring.config.require_source()
    return DoneSets(wiring)


def answer(table: Any, partition: Mapping[str, str], target: str | None, verdict: Verdict) -> dict[str, Any]:
    condition, said = condition_of(partition), ""
    error: CalqueError | None = None
    match verdict:
        case Done():
            place = f" at {target}, which shows event {verdict.shows}" if target is not None else ""
            only = ": definitions only, the rows are the source's" if verdict.definitions_only else ""
            said = f"{condition} of {verdict.table} is done{place}{only}"
        case NotDone():
            error = undone(table, partition, target, verdict)
        case OutsidePolicy():
            error = outside(verdict, target)
    row = verdict_row(table, condition, target, verdict)
    return {"row": row, "said": said, "error": None if error is None else error_document(error)}


def done_over_http(wiring: Wiring, given: Mapping[str, str]) -> tuple[int, Any]:
    """Answer `/done?table=…&KEY=VALUE…&target=…`: 200 where the set is done, 404 where it is not, and 409 where its
    table was dropped or made anew after the mark."""
    values = {key: value for key, value in given.items() if key not in ("table", "target")}
    if not given.get("table") or not values:
        todo = "Ask /done?table=sales.orders&ds=2024-01-01"
        raise Refused("The request names no set", "A set has a table and keys with values", todo)
    asked = {"table": given["table"], "target": given.get("target"), "values": values}
    found = done_check(wiring, asked)
    if found["error"] is not None and found["row"]["state"] == "outside":
        raise error_of(found["error"])
    status = 200 if found["row"]["done"] else 409 if found["row"]["state"] == "ended" else 404
    return status, found["row"]


QUESTIONS = {"mark": done_mark, "list": done_list, "check": done_check, "wait": done_wait}
"""The questions by the last word of their commands."""
