"""The command `calque sql`, which runs statements from an argument, a file, standard input or an interactive shell."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from calque.commands.options import CommandSettings, complete_targets, examples, shared
from calque.errors import CalqueError, print_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from calque.statements.result import AnyResult
    from calque.statements.session import Session

STANDARD_INPUT = "-"
AT_A_TIME = 1_000
"""Rows of an engine that one table shows."""
COMMENT = re.compile(r"--\s")


class StatementsCommand(click.Command):
    """The command `calque sql`, whose help shows the forms of statements, too: those that begin as the argument does,
    where one is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["topic"] = " ".join(word for word in args if not word.startswith("-"))
        # Two hyphens and a blank are a comment, and no option has such a name.
        return super().parse_args(ctx, [f" {word}" if COMMENT.match(word) else word for word in args])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        language = ctx.ensure_object(CommandSettings).app.language()
        forms = language.forms_of(ctx.meta.get("topic", "")) or language.forms
        with formatter.section("Statements"):
            for form in forms:
                formatter.write_text(form.syntax)
                with formatter.indentation():
                    formatter.write_text(f"{form.does}.")


@click.command(
    "sql",
    cls=StatementsCommand,
    epilog=examples(
        "calque sql 'SHOW TARGETS'",
        "calque sql \"SHOW TABLES AT dr LIKE 'sales.*'; SHOW EPOCHS AT dr\" --json",
        "calque sql -f nightly.sql --csv",
        "calque sql",
    ),
)
@click.argument("statements", required=False)
@click.option("-f", "--file", metavar="FILE", help="Read the statements from this file; - is standard input.")
@click.option(
    "--target", metavar="NAME", shell_complete=complete_targets, help="What statements mean that name no target."
)
@click.option("--csv", is_flag=True, help="Print rows as CSV, with a line of column names before them.")
@shared
@click.pass_obj
def command(settings: CommandSettings, statements: str | None, file: str | None, target: str | None, csv: bool) -> int:
    """Run statements, separated by semicolons.

    The first that fails ends the call; nothing is run before all of the text was parsed. Without an argument it reads
    standard input, or is a shell where that is a terminal. With the beginning of a statement as the argument, --help is
    about that one.
    """
    if csv and settings.json:
        raise click.UsageError("--csv and --json exclude each other. Each is a form of the same rows")
    if statements is not None and file is not None:
        raise click.UsageError("The statements stand in an argument and in a file. Only one of them is read")
    if statements is None and file is None and sys.stdin.isatty():
        if csv or settings.json:
            raise click.UsageError("The shell prints tables. --csv and --json need statements")
        with closing(session_of(settings, target)) as session:
            return run_shell(settings, session)
    text = statements if statements is not None else text_of(file or STANDARD_INPUT)
    documents = asked(settings, text, target)
    if documents is not None:
        return show(settings, documents, csv)
    with closing(session_of(settings, target)) as session:
        return run(settings, session, text, csv)


def asked(settings: CommandSettings, text: str, target: str | None) -> Sequence[Mapping[str, Any]] | None:
    """Return the results of statements that only show what there is from a running process, as `--json` prints them.
    None for other statements, and where no process answers."""
    from calque.control.asking import Declined, ask
    from calque.statements.shows import is_a_show

    if not is_a_show(text):
        return None
    try:
        documents: Sequence[Mapping[str, Any]] | None = ask(settings.config, "sql", {"text": text, "target": target})
    except Declined:
        return None
    return documents


def show(settings: CommandSettings, documents: Sequence[Mapping[str, Any]], is_csv: bool) -> int:
    """Print the results of a running process."""
    from calque.commands.output import print_csv, print_json, print_rows

    if settings.json:
        print_json(documents)
        return 0
    for document in documents:
        (print_csv if is_csv else print_rows)(document["columns"], document["rows"])
    return 0


def session_of(settings: CommandSettings, target: str | None) -> Session:
    from calque.statements.session import Session

    config = settings.load_any()
    session = Session(settings.app.wiring(config), config.select([target])[0] if target is not None else None)
    session.note = print_note
    return session


def print_note(text: str) -> None:
    """Print a note on stderr, because standard output has rows and nothing else."""
    print_error(text)


def text_of(file: str) -> str:
    """Return the text of the file, or of standard input for `-`. Raises `Refused` where it can't be read, or is not
    UTF-8."""
    from pathlib import Path

    from calque.errors import Refused

    try:
        data = sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()
        return data.decode()
    except OSError as error:
        raise Refused(f"{file} can't be read", str(error.strerror), "Name a readable file with -f") from None
    except UnicodeDecodeError as error:
        raise Refused(f"{file} is not UTF-8", f"Byte {error.start} is not", "Save it as UTF-8") from None


def run(settings: CommandSettings, session: Session, text: str, is_csv: bool) -> int:
    from calque.commands.output import print_csv

    results = executed(settings, text, session)
    if settings.json:
        print_documents(results)
    else:
        for _, result in results:
            if is_csv and result.columns:
                print_csv(result.columns, cells_of(result))
            else:
                print_result(result)
    return 0


def executed(settings: CommandSettings, text: str, session: Session) -> Iterator[tuple[str, AnyResult]]:
    """Yield each statement with its result, as soon as the result is there. A terminal shows meanwhile what is being
    done."""
    from rich.console import Console
    from rich.text import Text

    run_statements = settings.app.language().run
    if not sys.stderr.isatty():
        yield from run_statements(text, session)
        return
    with Console(stderr=True).status("") as status:
        session.report = lambda line: status.update(Text(" ".join(line.split()), no_wrap=True, overflow="ellipsis"))
        for each in run_statements(text, session):
            status.stop()
            yield each
            status.start()


def print_documents(results: Iterable[tuple[str, AnyResult]]) -> None:
    """Print all results as one JSON document. Where a statement fails, the document has the results before it, and the
    error is raised."""
    from calque.commands.output import print_json
    from calque.statements.result import StreamedResult, json_value

    documents: list[dict[str, object]] = []
    try:
        for text, result in results:
            rows = [json_value(row) for row in result.rows] if isinstance(result, StreamedResult) else result.rows
            documents.append({"statement": text, "columns": result.columns, "rows": rows})
    except CalqueError:
        if documents:
            print_json(documents)
        raise
    print_json(documents)


def print_result(result: AnyResult) -> None:
    """Print a result as a table. Rows that an engine gives one by one become a table for every `AT_A_TIME` of them."""
    from itertools import islice

    from calque.commands.output import print_rows
    from calque.statements.result import StreamedResult

    if not result.columns:
        return
    if not isinstance(result, StreamedResult):
        print_rows(result.columns, result.rows)
        return
    cells = cells_of(result)
    first = tuple(islice(cells, AT_A_TIME))
    print_rows(result.columns, first)
    while more := tuple(islice(cells, AT_A_TIME)):
        print_rows(result.columns, more)


def cells_of(result: AnyResult) -> Iterator[Sequence[object]]:
    """Yield the rows as tables and CSV show them: a value that is nested is JSON."""
    from json import dumps

    from calque.statements.result import StreamedResult, json_value

    if not isinstance(result, StreamedResult):
        yield from result.rows
        return
    for row in result.rows:
        values = map(json_value, row)
        yield tuple(dumps(value) if isinstance(value, list | dict) else value for value in values)


def run_shell(settings: CommandSettings, session: Session) -> int:
    from calque.config.extras import missing

    try:
        from calque.commands.sql_shell import history_file, shell
    except ModuleNotFoundError as error:
        raise missing("shell", "The shell of statements", error.name or "prompt_toolkit") from None

    def print_results(text: str) -> None:
        for _, result in executed(settings, text, session):
            print_result(result)

    shell(session, settings.app.language(), history_file(), print_results)
    return 0
