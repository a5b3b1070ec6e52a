"""The invitation of a demo that stays: its page, and lines to try in another terminal. Each line works as it is
printed."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calque.demo.configuration import CHANNEL, LOADED, LOADS_FILE
from calque.demo.shop import DAYS, ORDERS

SPECIAL = frozenset('$`"\\!')
"""The characters that a shell does not leave alone between double quotes."""
DAY = f"ds={DAYS[0]}"
WITH_DATA = "WITH ('hive.repl.run.data.copy.tasks.on.target' = 'false')"
"""The option of a dump without which the writer may remove files that it names."""
IMPORTED, LINK = "default.imported_orders", "default.linked_orders"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A line to try. `does` says in words what it shows."""

    does: str
    line: str


@dataclass(frozen=True, slots=True)
class Invitation:
    """The address of the page, the token that opens it, the path of the configuration, and lines to try."""

    page: str
    token: str
    configuration: Path
    suggestions: Sequence[Suggestion]


def suggestions(file: Path, source: str, targets: Sequence[str]) -> tuple[Suggestion, ...]:
    """Return the lines to try with the configuration `file`. `source` is the address of its metastore. Links are made
    at the metastore of the last target."""
    first, last = targets[0], targets[-1]
    export, loads = literal(str(file.with_name("export"))), file.with_name(LOADS_FILE)
    link = f"VIA 'thrift' WITH TBLPROPERTIES ('hive.metastore.uris' = {literal(source)})"
    return (
        line("Where each target is", file, "status"),
        line("The same in SQL", file, "sql", f"SHOW TARGETS; SHOW TABLES AT {first} LIKE '{ORDERS.database}.*'"),
        line("What readers saw of a table", file, "history", str(ORDERS), "--target", first),
        line("Compare every byte, under the writer", file, "verify", "--target", first, "--data", "checksum"),
        line("Hold a target back", file, "pause", "--target", last),
        line("Let it go on", file, "resume", "--target", last),
        line("Hear the notices of twenty seconds", file, "notices", "tail", CHANNEL, "--seconds", "20"),
        line("Say that a day is complete", file, "done", "mark", str(ORDERS), DAY),
        line("Wait until a target shows all of it", file, "done", "wait", str(ORDERS), DAY, "--target", first),
        line("Dump a database as Hive does, with its data", file, "sql", f"REPL DUMP {ORDERS.database} {WITH_DATA}"),
        line("Load the dump", loads, "sql", f"REPL LOAD {ORDERS.database} INTO {LOADED}; REPL STATUS {LOADED}"),
        line("Export a table", file, "sql", f"EXPORT TABLE {ORDERS} TO {export}"),
        line("Import it", file, "sql", "--target", first, f"IMPORT TABLE {IMPORTED} FROM {export}"),
        line(f"Link a table at {last}", file, "sql", f"CREATE REMOTE TABLE {LINK} CONNECTED TO {ORDERS} {link}"),
        line("See the link follow", file, "sql", "SHOW REMOTE TABLES"),
    )


def line(does: str, file: Path, *words: str) -> Suggestion:
    """Return the suggestion of a command with the configuration `file`."""
    return Suggestion(does, " ".join(map(quoted, (*calque(), *words, "-c", str(file)))))


def calque() -> tuple[str, ...]:
    """Return the words by which another terminal starts the program that runs here."""
    program = Path(sys.argv[0]).absolute()
    if program.name == "calque" and os.access(program, os.X_OK) and program.is_file():
        return (str(program),)
    return sys.executable, "-m", "calque.cli"


def literal(text: str) -> str:
    """Return the text as a literal of a statement."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def quoted(word: str) -> str:
    """Return the word as a shell reads it, between double quotes where it has single ones and that is possible."""
    return f'"{word}"' if "'" in word and SPECIAL.isdisjoint(word) else shlex.quote(word)
