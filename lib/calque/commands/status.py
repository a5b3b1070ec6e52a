"""The command `calque status`, which prints where the source, the journal and each target are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from calque.commands.options import CommandSettings, examples, shared
from calque.commands.output import counted

ROWS = 20
"""The number of tables of one target that are set aside, or lag, and are shown to people one by one."""


@click.command("status", epilog=examples("calque status", "calque status --watch", "calque status --json"))
@click.option("--watch", is_flag=True, help="Show it again and again until interrupted.")
@shared
@click.pass_obj
def command(settings: CommandSettings, watch: bool) -> int:
    """Show positions, lag, and tables that are set aside.

    Works while `calque run` runs, and when it does not.
    """
    if watch and settings.json:
        raise click.UsageError("--watch and --json exclude each other. --json prints one document")
    return watch_on(settings) if watch else run(settings)


def run(settings: CommandSettings) -> int:
    """Print the status once."""
    from calque.commands.output import print_json

    document = settings.answer("status")
    if settings.json:
        print_json(document)
    else:
        show(document)
    return 0


def watch_on(settings: CommandSettings) -> int:
    """Print the status each second until interrupted."""
    import time

    while True:
        document = settings.answer("status")
        click.clear()
        show(document)
        time.sleep(1.0)


def show(document: Mapping[str, Any]) -> None:
    """Print the document for people."""
    from calque.commands.output import print_rows, print_text, with_content

    for source in document["sources"]:
        show_source(source)
    for process in document["processes"]:
        pages = f", {process['serves']}" if process["serves"] else ""
        print_text(
            f"process {process['pid']} on {process['host']}{pages}: {', '.join(process['targets']) or 'no target'}"
        )
    for source in document["sources"]:
        show_gaps(source)
    kept_seconds = {source["source"]["name"]: source["capture"]["kept_seconds"] for source in document["sources"]}
    headings = ("target", "state", "position", "lag", "epoch", "live", "being read", "waiting", "quarantined")
    print_rows(*with_content(headings, [(name, *cells(target)) for name, target in document["targets"].items()]))
    channels = document.get("notices") or {}
    if channels:
        columns = ("notices", "at", "state", "position", "lag")
        print_rows(*with_content(columns, [(name, *channel_cells(one)) for name, one in channels.items()]))
    for name, described in (*document["targets"].items(), *channels.items()):
        if described["last_error"]:
            print_text(f"{name}: {described['last_error']}{tried(described['failing'])}")
    for name, target in document["targets"].items():
        kept = kept_seconds[target["source"]]
        if is_beyond_half(target["lag_seconds"], kept):
            print_text(
                f"{name}: warning: the lag is more than half of the {kept:.0f} s for which Hive "
                "keeps files at the source (hive.repl.cm.retain); after that their states are passed over"
            )
        if target["reading"] is not None:
            print_text(f"{name}: {reading(target['reading'])}")
        if target["copying"] is not None:
            print_text(f"{name}: {copying(target['copying'])}")
        for row in target["set_aside"][:ROWS]:
            print_text(f"{name}: {row['table']} is {row['state']}, shows event {row['shows']}: {row['reason']}")
        if len(target["set_aside"]) > ROWS:
            print_text(f"{name}: and {len(target['set_aside']) - ROWS} more that are set aside")
        if target["catches_up_at"]:
            speed = f"{target['events_per_second']:,.0f} events a second"
            print_text(f"{name}: shows {speed}, and has caught up about {target['catches_up_at']}")
        for row in target["lagging"][:ROWS]:
            lag = f"{row['lag_events']} events, {row['lag_seconds']} s"
            print_text(f"{name}: {row['table']} shows event {row['shows']}, and lags by {lag}")
        for row in target["quarantined"]:
            print_text(f"{name}: {row['table']} is quarantined since event {row['since_event']}: {row['reason']}")


def show_source(document: Mapping[str, Any]) -> None:
    """Print the lines of one source, its capture and its journal."""
    from calque.commands.output import print_text

    source, journal, capture = document["source"], document["journal"], document["capture"]
    head = f"event {source['head']}" if source["reachable"] else "unreachable"
    extent = f"events {journal['oldest']} to {journal['last']}" if journal["oldest"] is not None else "no events"
    print_text(f"source {source['name']}: {head}; journal: {extent}")
    if source["dml_events"] is False:
        print_text("hive.metastore.dml.events is off at the source: INSERTs are found by scans alone")
    error = f": {capture['last_error']}{tried(capture['failing'])}" if capture["last_error"] else ""
    print_text(f"capture is {capture['state']}{error}")
    if journal["last_error"]:
        print_text(f"journal: {journal['last_error']}")


def show_gaps(document: Mapping[str, Any]) -> None:
    from calque.commands.output import print_text

    for gap in document["journal"]["gaps"]:
        of = f" of {gap['target']}" if "target" in gap else ""
        print_text(
            f"gap{of}: events {gap['from']} to {gap['to']} ({gap['cause']}), found at {gap['found_at']}: {gap['state']}"
        )


def is_beyond_half(lag_seconds: float | None, kept_seconds: float | None) -> bool:
    """Tell whether the lag is more than half of the time for which Hive keeps files: they may be gone before the target
    has caught up."""
    return lag_seconds is not None and kept_seconds is not None and lag_seconds > kept_seconds / 2


def tried(failing: Mapping[str, Any] | None) -> str:
    """Return the end of an error's line: since when, how often it was tried, and when it is tried next. Empty where no
    process tells."""
    if failing is None:
        return ""
    then = f", the next at {failing['next']}" if failing["next"] else ""
    return f" It fails since {failing['since']}: {counted(failing['attempts'], 'attempt')}{then}."


def cells(target: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the cells of a target's row. Counts of tables that are not live are None where they are 0, so that a
    column without any is left out."""
    tables = target["tables"]
    is_known = tables["live"] is not None
    reading = tables["unknown"] + tables["reading"] + tables["staging"] if is_known else None
    lag = f"{target['lag_events']} events, {target['lag_seconds']} s" if is_known else None
    return (
        target["state"],
        target["position"],
        lag,
        target["epoch"],
        tables["live"],
        reading or None,
        tables["waiting"] or None,
        tables["quarantined"] or None,
    )


def channel_cells(channel: Mapping[str, Any]) -> tuple[object, ...]:
    lag = f"{channel['lag_events']} events" if channel["lag_events"] is not None else None
    return channel["at"], channel["state"], channel["position"], lag


def reading(document: Mapping[str, Any]) -> str:
    """Return the line that says how far exact reads are, and when they may be done."""
    from rich.filesize import decimal

    tables = f"{document['tables_done']} of {document['tables']} tables"
    partitions = f"{document['partitions_done']} of {document['partitions']} known partitions"
    amount = f"{decimal(document['bytes_done'])} of {decimal(document['bytes'])}"
    return f"reading: {tables}, {partitions}, {amount}{about(document['ends_at'])}"


def about(ends: float | None) -> str:
    """Return the time of the day at which work may be done, as an end of a line; empty where that is not known."""
    from datetime import datetime

    return f", done about {datetime.fromtimestamp(ends).astimezone():%H:%M:%S}" if ends is not None else ""


def copying(document: Mapping[str, Any]) -> str:
    """Return the line that says how far copies are, and when they may be done."""
    from rich.filesize import decimal

    files = f"{document['files_done']} of {document['files']} files"
    amount = f"{decimal(document['bytes_done'])} of {decimal(document['bytes'])}"
    return f"copying: {files}, {amount}{about(document['ends_at'])}"
