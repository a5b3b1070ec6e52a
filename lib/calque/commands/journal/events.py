"""The command `calque journal`, which prints the events that capture has copied from the source's log, whichever format
the journal has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calque.commands.journal.move import create_command, move_command
from calque.commands.options import EVENT_ID, Commands, CommandSettings, examples, need_command, shared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calque.config import Config
    from calque.model.journal import Entry, Event
    from calque.model.names import EventId
    from calque.ports import Journal

COUNT = 10
PAGE = 5_000
FOLLOW_SECONDS = 0.25
SHOWN = 3
"""The number of partitions that a line names; further ones are counted."""


@click.group(
    "journal",
    cls=Commands,
    epilog=examples("calque journal tail -n 20 --follow", "calque journal show 812"),
)
@shared
@click.pass_context
def command(context: click.Context) -> None:
    """Look at the captured events, and at where they are kept."""
    need_command(context)


@command.command("tail", epilog=examples("calque journal tail", "calque journal tail -n 3 --follow"))
@click.option("-n", "count", metavar="N", type=click.IntRange(min=0), default=COUNT, show_default=True, help="So many.")
@click.option("--follow", is_flag=True, help="Go on with each new event, until Ctrl-C.")
@shared
@click.pass_obj
def tail_command(settings: CommandSettings, count: int, follow: bool) -> int:
    """Show the newest events."""
    if follow and settings.json:
        raise click.UsageError("--json prints one document, and --follow never ends. Leave one of them out")
    config = settings.load()
    return follow_on(settings, config, count) if follow else tail(settings, config, count)


@command.command("show", epilog=examples("calque journal show 812", "calque journal show 812 --json"))
@click.argument("event_id", metavar="EVENT_ID", type=EVENT_ID)
@shared
@click.pass_obj
def show_command(settings: CommandSettings, event_id: int) -> int:
    """Show one event whole, with its message."""
    return show(settings, settings.load(), event_id)


command.add_command(create_command)
command.add_command(move_command)


def tail(settings: CommandSettings, config: Config, count: int) -> int:
    from calque.commands.output import print_json, print_table

    journal = opened(settings, config)
    _, last = retained_range(journal)
    entries = [entry for page in pages(journal, last - count, last) for entry in page]
    if settings.json:
        print_json([row_of(entry) for entry in entries])
    else:
        print_table(HEADINGS, map(cells, entries))
    return 0


def follow_on(settings: CommandSettings, config: Config, count: int) -> int:
    """Print the newest `count` events, then each new one, until a signal ends this. Return exit code 0."""
    from calque.commands.output import print_line
    from calque.streams.signals import ended_by_signals

    with ended_by_signals() as stopping:
        journal = opened(settings, config)
        last = journal.last()
        last_shown = max((last or 0) - count, 0)
        while not stopping.is_set():
            if last is not None and last < last_shown:
                print_line(f"The journal begins anew after event {last}")
                last_shown = last
            for page in pages(journal, last_shown, last or 0):
                if page[0].event_id > last_shown + 1:
                    print_line(f"Events {last_shown + 1} to {page[0].event_id - 1} are not in the journal")
                for entry in page:
                    print_line(line(entry))
                last_shown = page[-1].event_id
            stopping.wait(FOLLOW_SECONDS)
            last = journal.last()
    return 0


def show(settings: CommandSettings, config: Config, event_id: EventId) -> int:
    from calque.commands.output import print_json, print_line
    from calque.model.names import Span

    journal = opened(settings, config)
    require_kept(journal, event_id)
    event = journal.events([event_id])[event_id]
    (entry,) = journal.entries(Span(event_id - 1, event_id))
    document = {**row_of(entry), **rest_of(entry, event)}
    if settings.json:
        print_json(document)
        return 0
    message = document.pop("message")
    for name, value in document.items():
        if value not in (None, "", [], False):
            print_line(f"{name:<16} {shown(value)}")
    for text in pretty(message).split("\n"):
        print_line(text)
    return 0


def opened(settings: CommandSettings, config: Config) -> Journal:
    return settings.app.wiring(config).only_source().side().journal


def retained_range(journal: Journal) -> tuple[EventId, EventId]:
    """Return the oldest and the newest event id. The oldest is the greater one where no row is left. Raises `Refused`
    before the first event."""
    from calque.errors import Refused

    last = journal.last()
    if last is None:
        raise Refused("The journal has no events yet", "Nothing was captured", "Start `calque run`")
    oldest = journal.oldest()
    return (last + 1 if oldest is None else oldest), last


def require_kept(journal: Journal, event_id: EventId) -> None:
    """Raise `Refused` where the journal does not have the event, with the events that it has."""
    from calque.errors import Refused

    oldest, last = retained_range(journal)
    extent = f"It has events {oldest} to {last}" if oldest <= last else f"It is empty, and goes on after event {last}"
    if event_id > last:
        raise Refused(f"Event {event_id} is not in the journal yet", extent, "Name one of them, or wait for it")
    if event_id < oldest:
        why = f"{extent}; older ones are kept for [journal] retention, or were lost in a gap (see `calque status`)"
        raise Refused(f"Event {event_id} is not in the journal any more", why, "Name one that it has")


def pages(journal: Journal, after: EventId, upto: EventId) -> Iterator[Sequence[Entry]]:
    """Yield the entries after `after` up to `upto` that the journal still has, ascending, page by page."""
    from calque.model.names import Span

    oldest = journal.oldest()
    after = upto if oldest is None else max(after, oldest - 1)
    while after < upto:
        page = journal.entries(Span(after, min(after + PAGE, upto)))
        yield page
        after = page[-1].event_id


# What is shown

HEADINGS = ("event", "time", "type", "kind", "object", "partitions")


def row_of(entry: Entry) -> dict[str, Any]:
    """Return the fields that `tail` prints of an event. Names are the source's; `was` is the name before a rename."""
    keys = entry.keys
    return {
        "event_id": entry.event_id,
        "time": iso(entry.event_time),
        "type": entry.event_type,
        "kind": keys.kind.value,
        "table": str(keys.table) if keys.table else None,
        "was": str(keys.other) if keys.other else None,
        "partitions": list(keys.partitions),
        "partitions_were": list(keys.others),
        "locations": list(keys.locations),
        "defect": keys.defect or None,
    }


def rest_of(entry: Entry, event: Event) -> dict[str, Any]:
    """Return the fields that `show` adds. `message` is JSON where the event's message can be read as such, else its
    text."""
    keys = entry.keys
    return {
        "catalog": event.catalog or None,
        "database": event.database or None,
        "table_of_event": event.table or None,
        "shape": keys.shape.value or None,
        "replaces": keys.replaces,
        "columns_changed": keys.columns_changed,
        "facets_only": keys.facets_only,
        "transactional": keys.transactional,
        "message_format": event.message_format or None,
        "message": message_of(event),
    }


def message_of(event: Event) -> Any:
    """Return the event's message as JSON, with the objects in it that are given as texts; the text itself where it is
    no JSON."""
    import json

    from calque.core.events.decode import Undecodable, text_of

    try:
        return unfolded(json.loads(text_of(event.message_format, event.message)))
    except (Undecodable, ValueError, RecursionError):
        return event.message


def unfolded(value: Any) -> Any:
    import json

    match value:
        case dict():
            return {name: unfolded(item) for name, item in value.items()}
        case list():
            return [unfolded(item) for item in value]
        case str() if value.startswith("{"):
            try:
                return json.loads(value)
            except ValueError:
                return value
    return value


def cells(entry: Entry) -> tuple[object, ...]:
    row = row_of(entry)
    old_name = f" (was {row['was']})" if row["was"] else ""
    defect = f" {row['defect']}" if row["defect"] else ""
    about = f"{row['table'] or '-'}{old_name}{defect}"
    return row["event_id"], row["time"], row["type"], row["kind"], about, listed(row["partitions"])


def line(entry: Entry) -> str:
    event_id, event_time, type_, kind, about, partitions = cells(entry)
    return f"{event_id:>8}  {event_time}  {type_:<24}  {kind:<18}  {about}  {partitions}".rstrip(" -")


def listed(partitions: Sequence[str]) -> str:
    remainder = f" and {len(partitions) - SHOWN} more" if len(partitions) > SHOWN else ""
    return (", ".join(partitions[:SHOWN]) + remainder) or "-"


def shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def pretty(message: object) -> str:
    import json

    return message if isinstance(message, str) else json.dumps(message, indent=2, ensure_ascii=False)


def iso(seconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
