"""Writes the catalog of the package in `support/packages/shelf`: one database, `shop`, in a file of JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Shelf:
    """Tables have files of text below `root`; each change of one is written at once."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.root = path, root
        self.tables: dict[str, Any] = {}
        self.writes = 0

    def place(self, table: str, value: str = "") -> str:
        return f"file:{self.root}/{table}" + (f"/p={value}" if value else "")

    def put(self, table: str, *values: str, columns: tuple[str, ...] = ("x",), place: str = "") -> None:
        """The table, made or altered; with values one with these partitions. It says that it lies at that place, where
        one is given."""
        self.writes += 1
        for value in values or ("",):
            folder = Path(self.place(table, value).removeprefix("file:"))
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / "one").exists():
                (folder / "one").write_bytes(b"1\n")
        self.tables[table] = {
            "version": str(self.writes),
            "location": place or self.place(table),
            "columns": dict.fromkeys(columns, "int"),
            "keys": {"p": "string"} if values else {},
            "partitions": {value: self.place(table, value) for value in values},
        }
        self.write()

    def drop(self, table: str) -> None:
        del self.tables[table]
        self.write()

    def hide(self) -> None:
        """Nobody reads it until `show`."""
        self.path.unlink()

    def show(self) -> None:
        self.write()

    def write(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"shop": self.tables}))
        new.replace(self.path)
