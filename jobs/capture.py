"""spark-submit jobs/capture.py [-c calque.toml]: copy the source's log into the journal until a signal comes."""

from __future__ import annotations

import sys

import click

from calque.app import APP
from calque.commands.options import DEFAULT_CONFIG, serve_option
from calque.errors import CalqueError, print_error
from calque.logs.setup import report_error


@click.command()
@click.option("-c", "--config", metavar="FILE", default=DEFAULT_CONFIG, show_default=True, help="The configuration.")
@serve_option
def capture(config: str, serve: str) -> int:
    """Copy the source's log into the journal, and find out which files belong to its events.

    The part of `calque run` that no target needs to wait for; run it once for a state folder.
    """
    return APP.run_file(config, None, None, capture=True, address=serve)


def main() -> int:
    """The exit code, as `calque run` has it."""
    try:
        return int(capture.main(standalone_mode=False) or 0)
    except click.ClickException as error:
        print_error(error.format_message(), "See --help")
        return 64
    except CalqueError as error:
        report_error(error)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
