"""`calque.connect`: statements by PEP 249."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import calque
from support.worlds.recorded_ledger import recorded_ledger, spoil

STAFF = ("hr.staff", None, "staging", None, None, "It is being copied.")
ITEMS = ("sales.items", "sales_dr.items", "quarantined", 5, 7, "It can't be read.")
ORDERS = ("sales.orders", "sales_dr.orders", "live", 8, None, "")


@pytest.fixture
def connection(tmp_path: Path) -> calque.Connection:
    return calque.connect(recorded_ledger(tmp_path))


def test_the_module_says_what_pep_249_asks_for() -> None:
    assert (calque.apilevel, calque.threadsafety, calque.paramstyle) == ("2.0", 1, "qmark")
    assert issubclass(calque.Warning, Exception)
    assert issubclass(calque.Error, Exception)
    assert issubclass(calque.InterfaceError, calque.Error)
    assert issubclass(calque.DatabaseError, calque.Error)
    for error in (
        calque.DataError,
        calque.OperationalError,
        calque.IntegrityError,
        calque.InternalError,
        calque.ProgrammingError,
        calque.NotSupportedError,
    ):
        assert issubclass(error, calque.DatabaseError)


def test_rows_are_fetched_one_by_one_in_parts_and_all(connection: calque.Connection) -> None:
    with connection, connection.cursor() as cursor:
        cursor.execute("SHOW TABLES AT dr")
        assert [column[0] for column in cursor.description or ()] == [
            "table",
            "at_target",
            "state",
            "shows",
            "since_event",
            "reason",
        ]
        assert {len(column) for column in cursor.description or ()} == {7}
        assert cursor.rowcount == 3
        assert cursor.fetchone() == STAFF
        assert cursor.fetchmany() == [ITEMS]
        assert cursor.fetchmany(5) == [ORDERS]
        assert (cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall()) == (None, [], [])
        assert list(cursor.execute("SHOW TABLES AT dr")) == [STAFF, ITEMS, ORDERS]


def test_question_marks_are_parameters(connection: calque.Connection) -> None:
    cursor = connection.cursor().execute("SHOW TABLES AT ? LIKE ?;", ("dr", "sales.o*"))
    assert cursor.fetchall() == [ORDERS]


def test_use_holds_for_the_connection(connection: calque.Connection) -> None:
    cursor = connection.cursor().execute("USE sales")
    assert (cursor.description, cursor.rowcount) == (None, -1)
    with pytest.raises(calque.ProgrammingError, match="There are no rows"):
        cursor.fetchall()
    assert connection.cursor().execute("SHOW TABLES AT dr LIKE 'items'").fetchall() == [ITEMS]


def test_executemany_takes_what_gives_no_rows_back(connection: calque.Connection) -> None:
    cursor = connection.cursor()
    cursor.executemany("USE a", [(), ()])
    with pytest.raises(calque.ProgrammingError, match="executemany takes no statement"):
        cursor.executemany("SHOW EPOCHS AT ?", [("dr",)])


@pytest.mark.parametrize(
    ("statement", "error", "said"),
    [
        ("SHOW TARGTES", calque.ProgrammingError, "(?s)Line 1, column 6: .*\n  SHOW TARGTES\n       \\^$"),
        ("SHOW EPOCHS AT drr", calque.ProgrammingError, 'There is no target "drr"'),
        ("SHOW REMOTE TABLES", calque.ProgrammingError, "There are no remote tables here"),
        ("SELECT 1", calque.ProgrammingError, "begins a statement for an engine"),
        ("SHOW EPOCHS AT ?", calque.ProgrammingError, "A \\? has no value"),
        ("USE a; USE b", calque.ProgrammingError, "takes one statement, not 2"),
        ("", calque.ProgrammingError, "takes one statement, not 0"),
    ],
)
def test_errors_are_those_of_pep_249(
    connection: calque.Connection, statement: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said) as raised:
        connection.cursor().execute(statement)
    assert type(raised.value) is error


def test_what_does_not_answer_is_an_operational_error(tmp_path: Path) -> None:
    connection = calque.connect(recorded_ledger(tmp_path))
    spoil(tmp_path)
    with pytest.raises(calque.OperationalError, match=" is damaged"):
        connection.cursor().execute("SHOW EPOCHS")


def test_a_wrong_configuration_is_a_programming_error(tmp_path: Path) -> None:
    with pytest.raises(calque.ProgrammingError, match=r"There is no file .*none\.toml"):
        calque.connect(tmp_path / "none.toml")
    with pytest.raises(calque.ProgrammingError, match='There is no target "drr"'):
        calque.connect(recorded_ledger(tmp_path), target="drr")


@pytest.mark.parametrize(
    "use",
    [
        lambda connection: connection.cursor(),
        lambda connection: connection.commit(),
        lambda connection: connection.cursor().execute("USE a"),
    ],
)
def test_a_closed_connection_refuses_to_be_used(
    connection: calque.Connection, use: Callable[[calque.Connection], object]
) -> None:
    with closing(connection):
        connection.commit()
    with pytest.raises(calque.ProgrammingError, match="The connection is closed"):
        use(connection)


def test_a_closed_cursor_refuses_to_be_used(connection: calque.Connection) -> None:
    cursor = connection.cursor().execute("SHOW EPOCHS")
    cursor.close()
    with pytest.raises(calque.ProgrammingError, match="The cursor is closed"):
        cursor.fetchall()


def test_nothing_can_be_taken_back(connection: calque.Connection) -> None:
    with pytest.raises(calque.NotSupportedError, match="take effect at once"):
        connection.rollback()
