"""`calque.connect`: a connection over a configuration, as PEP 249 has it."""

from __future__ import annotations

from pathlib import Path

from calque.app import APP
from calque.errors import CalqueError
from calque.statements.dbapi import Connection, error_of
from calque.statements.session import Session


def connect(config: str | Path = "calque.toml", target: str | None = None) -> Connection:
    """Return a connection over the configuration in the file `config`, as PEP 249 has it. Nothing is asked before a
    statement is executed. `target` is the one that statements mean which name none."""
    try:
        loaded = APP.load(config)
        session = Session(APP.wiring(loaded), loaded.select([target])[0] if target is not None else None)
        return Connection(session, APP.language())
    except CalqueError as error:
        raise error_of(error) from error
