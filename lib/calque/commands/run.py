"""The command `calque run`, which captures the source's log and replicates to each target until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from calque.commands.options import CommandSettings, examples, head_or_event, shared, targets_option
from calque.logs.setup import log_to_stderr
from calque.streams.signals import ended_by_signals

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from calque.config import Config


@click.command("run", epilog=examples("calque run", "calque run --until head", "calque run --target dr --until 812"))
@click.option("--until", metavar="head|EVENT_ID", type=head_or_event, help="Stop when every target is at that event.")
@targets_option
@shared
@click.pass_obj
def command(settings: CommandSettings, until: str | int | None, targets: Sequence[str]) -> int:
    """Capture the source's log, and replicate to each target.

    With --until it stops with exit 0 once every target's position is at least that event ("head" is the source's event
    id at the start), or with 75 when only tables that are set aside are missing.
    """
    with ended_by_signals() as stopping:
        from calque.control.asking import digest_of_file

        digest = digest_of_file(settings.config)
        config = settings.load()
        log_to_stderr(config.log.format, config.log.level)
        return run(settings, config, config.select(targets), until, stopping, targets, digest)


def run(
    settings: CommandSettings,
    config: Config,
    targets: Sequence[str],
    until: str | int | None,
    stopping: threading.Event,
    named: Sequence[str] = (),
    digest: str = "",
) -> int:
    """Run the always-on job, and return its exit code. `until` is "head", an event id, or None for ever. `named` are
    the targets that the command line names, by which a reload chooses again. `digest` is that of the file before
    `config` was read from it."""
    from pathlib import Path

    from calque.config.conflicts import unsupported
    from calque.streams import spark_session

    for refusal in (*unsupported(config), *settings.app.missing_extras(config)):
        raise refusal
    spark_session.begin(Path(config.state.path))
    from calque.control.process_locks import roles, tell_of_holders

    tell_of_holders(Path(config.state.path), roles(config, config.sources, targets))
    from calque.commands.output import print_json
    from calque.control.asking import digest_of_file
    from calque.control.status import snapshot
    from calque.streams.job import run_job
    from calque.streams.reload import ConfigurationReader

    reader = ConfigurationReader(settings.load, named, lambda: digest_of_file(settings.config))
    reader.note(digest)
    code = run_job(
        settings.app.wiring(config),
        targets,
        until,
        stopping,
        reread=reader,
        serve_settings=config.serve,
        kinds=settings.app.process(),
    )
    if settings.json:
        print_json(snapshot(settings.app.wiring(settings.load()), settings.app.status()))
    return code
