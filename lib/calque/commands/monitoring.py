"""The command `calque monitoring`, which prints the packaged dashboard for Grafana and the alerts for Prometheus."""

from __future__ import annotations

import click

from calque.commands.options import Commands, CommandSettings, examples, need_command, shared


@click.group(
    "monitoring",
    cls=Commands,
    epilog=examples("calque monitoring grafana", "calque monitoring alerts"),
)
@shared
@click.pass_context
def command(context: click.Context) -> None:
    """Print a dashboard for Grafana, or alerts for Prometheus.

    Both read the metrics of `calque run`. Needs no configuration.
    """
    need_command(context)


@command.command("grafana", epilog=examples("calque monitoring grafana"))
@shared
@click.pass_obj
def grafana_command(settings: CommandSettings) -> int:
    """Print the dashboard, to be imported in Grafana 11 or newer.

    It is JSON with and without --json.
    """
    return grafana(settings)


@command.command(
    "alerts",
    epilog=examples("calque monitoring alerts", "calque monitoring alerts --json"),
)
@shared
@click.pass_obj
def alerts_command(settings: CommandSettings) -> int:
    """Print the rules of alerts, a file for `rule_files` of Prometheus.

    It is YAML; with --json an object with the name of the file and its content.
    """
    return alerts(settings)


def grafana(settings: CommandSettings) -> int:
    from calque.serve.monitoring import DASHBOARD

    print_file(DASHBOARD.read_text(encoding="utf-8"), is_document=settings.json)
    return 0


def alerts(settings: CommandSettings) -> int:
    from calque.commands.output import print_json
    from calque.serve.monitoring import ALERTS

    content = ALERTS.read_text(encoding="utf-8")
    if settings.json:
        print_json({"file": ALERTS.name, "content": content})
    else:
        print_file(content, is_document=False)
    return 0


def print_file(content: str, *, is_document: bool) -> None:
    """Print a packaged file as it is. `is_document` says that it is the command's JSON document."""
    from calque.commands.output import PRINTED

    PRINTED.document = is_document
    click.echo(content, nl=False)
