"""Audit statements: SQL over recorded epochs answers."""

from __future__ import annotations

from pathlib import Path

import pytest

import calque
from support.worlds.recorded_audit import recorded_audit
from support.worlds.recorded_ledger import TEXT


def test_it_works_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recorded_audit(tmp_path, TEXT)
    with calque.connect("calque.toml") as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM calque.epochs")
        [(count,)] = cursor.fetchall()
    assert count > 0
