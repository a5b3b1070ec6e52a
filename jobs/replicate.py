"""spark-submit jobs/replicate.py [-c calque.toml] [--target NAME]… [--until head|EVENT_ID]: journal → targets."""

from __future__ import annotations

import sys

import click

from calque.app import APP
from calque.commands.options import DEFAULT_CONFIG, head_or_event, serve_option, targets_option
from calque.errors import CalqueError, print_error
from calque.logs.setup import report_error


@click.command()
@click.option("-c", "--config", metavar="FILE", default=DEFAULT_CONFIG, show_default=True, help="The configuration.")
@click.option("--until", metavar="head|EVENT_ID", type=head_or_event, help="Stop when every target is at that event.")
@targets_option
@serve_option
def replicate(config: str, until: str | int | None, targets: tuple[str, ...], serve: str) -> int:
    """Replicate from the journal, which jobs/capture.py fills, to each target."""
    return APP.run_file(config, targets, until, capture=False, address=serve)


def main() -> int:
    """The exit code, as `calque run` has it."""
    try:
        return int(replicate.main(standalone_mode=False) or 0)
    except click.ClickException as error:
        print_error(error.format_message(), "See --help")
        return 64
    except CalqueError as error:
        report_error(error)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
