"""The command `calque history`, which prints what a target showed of one table, event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calque.commands.options import CommandSettings, complete_tables, examples, one_target_option, shared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


DOTS = {"shown": "●", "passed_over": "│ ○", "waiting": "◌", "before": "┊"}
WORDS = {"shown": "shown", "passed_over": "passed over", "waiting": "waits", "before": "older"}


@click.command("history", epilog=examples("calque history sales.x", "calque history sales.x --target dr --json"))
@click.argument("table", metavar="TABLE", shell_complete=complete_tables)
@one_target_option
@shared
@click.pass_obj
def command(settings: CommandSettings, table: str, targets: Sequence[str]) -> int:
    """Draw what a target showed of a table, oldest first.

    Which events of the table it shows, which it passed over and why, and which wait: as far back as the journal and the
    ledger go, and over 50000 events at most.
    """
    return run(settings, targets, table)


def run(settings: CommandSettings, targets: Sequence[str], table: str) -> int:
    """Print what the target showed of the table. Raises `Refused` where neither the journal nor the ledger knows the
    table."""
    from calque.commands.output import print_json, print_line

    history = settings.answer_for_one("history", targets, table=table)
    if settings.json:
        print_json(history)
        return 0
    for link in history["links"]:
        print_line(line(link))
    shows = "nothing" if history["shows"] is None else f"event {history['shows']}"
    remark = f": {history['reason']}" if history["reason"] else ""
    print_line(f"{history['table']} at {history['target']} is {history['state']}, and shows {shows}{remark}")
    return 0


def line(link: Mapping[str, Any]) -> str:
    kind = link["kind"].replace("_", " ")
    names = "".join(f", {word} {link[word]}" for word in ("was", "now") if link[word])
    parts = f", {link['partitions']} partitions" if link["partitions"] > 1 else ""
    return f"{DOTS[link['fate']]:<4}{link['event_id']:>8}  {kind}{parts}{names}: {outcome(link)}"


def outcome(link: Mapping[str, Any]) -> str:
    if link["fate"] != "shown":
        return f"{WORDS[link['fate']]}: {link['why']}{passed_at(link)}"
    from calque.commands.output import counted, tallied

    files = f", {counted(link['files'], 'file')} ({link['bytes']} bytes)" if link["files"] else ""
    epoch = "" if link["epoch"] is None else f", epoch {link['epoch']} at {link['published_at']}"
    return f"{'bridge' if link['bridge'] else 'shown'}, {tallied(link['changes'])}{files}{epoch}"


def passed_at(link: Mapping[str, Any]) -> str:
    """Return when the target passed an event that it does not show, else when the source logged it, as the end of a
    line; empty where neither is known."""
    from datetime import UTC, datetime

    if link["epoch"] is not None:
        return f"; epoch {link['epoch']} at {link['published_at']}"
    if link["event_time"]:
        return f"; logged at {datetime.fromtimestamp(link['event_time'], UTC).isoformat()}"
    return ""
