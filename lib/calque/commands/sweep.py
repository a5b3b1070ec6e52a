"""`calque sweep`: remove what nothing needs any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, shared, targets_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calque.config import Config
    from calque.core.admit import Admission
    from calque.engine.sweep.retention import DeletedRows
    from calque.engine.sweep.sweep import SweepResult, Unsent
    from calque.wiring.source import SourceWiring
    from calque.wiring.wiring import Wiring


@click.command("sweep", epilog=examples("calque sweep", "calque sweep --target dr --json"))
@targets_option
@shared
@click.pass_obj
def command(settings: CommandSettings, targets: Sequence[str]) -> int:
    """Remove what nothing needs any more.

    Replaced files past their grace period, unreferenced staging files, and journal spans past their retention. Run it
    at intervals, also beside `calque run`: while a target changes, what is found unneeded is noted, and removed by the
    first sweep that finds it so after the grace period.
    """
    config = settings.load()
    return run(settings, config, config.select(targets))


def run(settings: CommandSettings, config: Config, targets: Sequence[str]) -> int:
    """One target that can't be reached does not keep others from being swept; the exit code is 75 then."""
    from calque.commands.output import print_json
    from calque.errors import Unavailable, print_error
    from calque.wiring.wiring import Wiring

    wiring = Wiring(config)
    results: dict[str, SweepResult] = {}
    code = 0
    for name in targets:
        try:
            results[name] = sweep_one(wiring, name)
        except Unavailable as error:
            print_error(f"{name}: {error.what}", error.why, error.todo)
            code = error.exit_code
    deleted_rows = forget(wiring)
    if settings.json:
        print_json(document(results, deleted_rows))
    else:
        print_swept(results, deleted_rows)
    return code


def sweep_one(wiring: Wiring, name: str) -> SweepResult:
    from calque.control.epoch_holds import held_since
    from calque.engine.sides.sides import SystemClock
    from calque.engine.sweep.sweep import sweep_target

    old_notes, now = noted_before(wiring, name), SystemClock().now_ns()
    target = wiring.target(name)
    side = target.side_behind(target.deputy())
    held_from = held_since(wiring.control, name, now)
    result = sweep_target(
        side,
        target.source.side().journal,
        now,
        old_notes,
        neighbours(wiring.config, name),
        held_from,
        unsent(wiring, name, now),
        lambda before: target.keep_history(before, now),
    )
    if dict(result.noted) != old_notes:
        wiring.control.put(target.places.sweep_record, {"noted": result.noted})
    return result


def unsent(wiring: Wiring, name: str, now_ns: int) -> Unsent | None:
    """None where no channel is at the target. Channels that never ran want nothing of the past."""
    from calque.engine.notices.positions import Position
    from calque.engine.sweep.sweep import Unsent

    records = [
        record
        for channel in wiring.config.channels_at(name)
        if (record := wiring.control.read(wiring.channel(channel.name).places.position_record)) is not None
    ]
    if not records:
        return None
    retention = wiring.target(name).source.plug.journal.retention
    return Unsent(min(Position.of(record).epoch for record in records), now_ns - int(retention * 1e9))


def noted_before(wiring: Wiring, name: str) -> dict[str, int]:
    """The last sweep's notes; what is no note is no loss."""
    match wiring.control.read(wiring.target(name).places.sweep_record):
        case {"noted": dict(notes)}:
            return {
                location: since
                for location, since in notes.items()
                if isinstance(location, str) and isinstance(since, int)
            }
    return {}


def neighbours(config: Config, name: str) -> list[Admission]:
    """The other targets that write below the same warehouse."""
    from calque.core.layout import place

    own_place = place(config.target(name).keys.warehouse)
    admissions = []
    for other, target in config.targets.items():
        other_place = place(target.keys.warehouse)
        if (
            other != name
            and target.admission().copies_some
            and (own_place.contains(other_place) or other_place.contains(own_place))
        ):
            admissions.append(target.admission())
    return admissions


def forget(wiring: Wiring) -> DeletedRows:
    from calque.engine.sweep.retention import DeletedRows

    deleted = DeletedRows()
    for name, source in wiring.sources.items():
        deleted += forget_of_source(wiring, name, source)
    return deleted


def forget_of_source(wiring: Wiring, name: str, source: SourceWiring) -> DeletedRows:
    from calque.engine.sweep.retention import Limits, let_go, retain_keys
    from calque.streams.beginning import beginning_of

    keys, retention = source.plug.keys, source.plug.journal.retention
    ledgers = [wiring.ledger(target) for target in wiring.config.targets_of(name)]

    def before() -> None:
        begin = beginning_of(wiring, name).recorded() or 0
        retain_keys(source.side(), wiring.control, source.places.notice_keys_record, begin, retention)
        source.keep_history(source.side().clock.now_ns())

    return let_go(source.side(), ledgers, retention, Limits(keys.pin_bytes, keys.pin_age), before)


def document(results: dict[str, SweepResult], deleted_rows: DeletedRows) -> object:
    targets = {
        name: {
            "removed": result.removed,
            "files": sum(item.files for item in result.removed),
            "bytes": sum(item.bytes for item in result.removed),
            "noted": len(result.noted),
            "epochs": result.epochs,
        }
        for name, result in results.items()
    }
    return {"targets": targets, "journal": deleted_rows}


def print_swept(results: dict[str, SweepResult], deleted_rows: DeletedRows) -> None:
    from calque.commands.output import print_line

    for name, result in results.items():
        for item in result.removed:
            print_line(f"{name}: removed {item.what} {item.location} ({item.files} files, {item.bytes} bytes)")
        files, size = sum(item.files for item in result.removed), sum(item.bytes for item in result.removed)
        print_line(
            f"{name}: {len(result.removed)} removed with {files} files and {size} bytes, {len(result.noted)} noted for "
            f"later, {result.epochs} epochs forgotten"
        )
    print_line(f"journal: {deleted_rows.events} events and {deleted_rows.evidence} listings forgotten")
