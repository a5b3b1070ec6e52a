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
    from calque.engine.sweep.sweep import SweepResult
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
    swept: dict[str, SweepResult] = {}
    code = 0
    for name in targets:
        try:
            swept[name] = sweep_one(wiring, name)
        except Unavailable as error:
            print_error(f"{name}: {error.what}", error.why, error.todo)
            code = error.exit_code
    forgotten = forget(wiring)
    if settings.json:
        print_json(document(swept, forgotten))
    else:
        print_swept(swept, forgotten)
    return code


def sweep_one(wiring: Wiring, name: str) -> SweepResult:
    from calque.control.epoch_holds import held_since
    from calque.engine.sides.sides import SystemClock
    from calque.engine.sweep.sweep import sweep_target

    noted, now = noted_before(wiring, name), SystemClock().now_ns()
    target = wiring.target(name)
    side = target.side_behind(target.deputy())
    held = held_since(wiring.control, name, now)
    swept = sweep_target(side, target.source.side().journal, now, noted, neighbours(wiring.config, name), held)
    if dict(swept.noted) != noted:
        wiring.control.put(target.places.sweep_record, {"noted": swept.noted})
    return swept


def noted_before(wiring: Wiring, name: str) -> dict[str, int]:
    """The last sweep's notes; what is no note is no loss."""
    match wiring.control.read(wiring.target(name).places.sweep_record):
        case {"noted": dict(noted)}:
            return {at: since for at, since in noted.items() if isinstance(at, str) and isinstance(since, int)}
    return {}


def neighbours(config: Config, name: str) -> list[Admission]:
    """The other targets that write below the same warehouse."""
    from calque.core.layout import place

    here = place(config.target(name).keys.warehouse)
    found = []
    for other, target in config.targets.items():
        there = place(target.keys.warehouse)
        if other != name and target.keys.data == "copy" and (here.contains(there) or there.contains(here)):
            found.append(target.admission())
    return found


def forget(wiring: Wiring) -> DeletedRows:
    from calque.engine.sweep.retention import Limits, let_go

    source = wiring.only_source()
    plug = source.plug
    ledgers = [wiring.ledger(name) for name in wiring.config.targets_of(plug.name)]
    return let_go(source.side(), ledgers, plug.journal.retention, Limits(plug.keys.pin_bytes, plug.keys.pin_age))


def document(swept: dict[str, SweepResult], forgotten: DeletedRows) -> object:
    targets = {
        name: {
            "removed": found.removed,
            "files": sum(item.files for item in found.removed),
            "bytes": sum(item.bytes for item in found.removed),
            "noted": len(found.noted),
            "epochs": found.epochs,
        }
        for name, found in swept.items()
    }
    return {"targets": targets, "journal": forgotten}


def print_swept(swept: dict[str, SweepResult], forgotten: DeletedRows) -> None:
    from calque.commands.output import print_line

    for name, found in swept.items():
        for item in found.removed:
            print_line(f"{name}: removed {item.what} {item.location} ({item.files} files, {item.bytes} bytes)")
        files, size = sum(item.files for item in found.removed), sum(item.bytes for item in found.removed)
        print_line(
            f"{name}: {len(found.removed)} removed with {files} files and {size} bytes, {len(found.noted)} noted for "
            f"later, {found.epochs} epochs forgotten"
        )
    print_line(f"journal: {forgotten.events} events and {forgotten.evidence} listings forgotten")
