"""`calque notices`: what channels tell message brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calque.commands.options import Commands, CommandSettings, duration, examples, need_command, shared

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.group("notices", cls=Commands, epilog=examples("calque notices tail bus --follow"))
@shared
@click.pass_context
def command(context: click.Context) -> None:
    """Listen to what channels of notices send."""
    need_command(context)


@command.command("tail", epilog=examples("calque notices tail bus", "calque notices tail bus --follow"))
@click.argument("name", metavar="NAME")
@click.option("--follow", is_flag=True, help="Listen until Ctrl-C.")
@click.option("--seconds", "seconds", metavar="S", type=duration, default="10s", show_default=True, help="So long.")
@shared
@click.pass_obj
def tail_command(settings: CommandSettings, name: str, follow: bool, seconds: float) -> int:
    """Print what the channel NAME sends from now on, as any subscriber gets it."""
    if follow and settings.json:
        raise click.UsageError("--json prints one document, and --follow never ends. Leave one of them out")
    from calque.commands.output import print_json, print_line
    from calque.plugins.notices.api.listen import messages, record_of
    from calque.plugins.notices.wiring import named_channel

    channel = named_channel(settings.app.wiring(settings.load()), name)
    heard = messages(channel, float("inf") if follow else seconds)
    if settings.json:
        print_json([record_of(message) for message in heard])
        return 0
    for message in heard:
        print_line(f"{message.topic} {line_of(record_of(message)['notice'])}")
    return 0


def line_of(notice: Mapping[str, Any]) -> str:
    """Return the notice as a line for people; a message in HCatalog's form as it is."""
    if "notice" not in notice:
        return str(notice)
    table = f"{notice['database']}.{notice['table']}" if notice["table"] else "-"
    was = f" (was {notice['was']})" if notice["was"] else ""
    partitions = ["/".join(f"{key}={value}" for key, value in values.items()) for values in notice["partitions"]]
    more = f" and {len(partitions) - 3} more" if len(partitions) > 3 else ""
    told = notice.get("condition") or ", ".join(partitions[:3]) + more
    return f"{notice['published_at']} event {notice['event_id']} {notice['type']} {table}{was} {told}".rstrip()
