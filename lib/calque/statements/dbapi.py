"""The interface of PEP 249 over statements: a connection, its cursors, and the tree of errors. `calque.connect` opens a
connection.

    Error
    ├── InterfaceError
    └── DatabaseError
        ├── DataError, IntegrityError     never raised
        ├── OperationalError              a service does not answer, or refuses us: Unavailable, AccessRefused
        ├── InternalError                 an invariant fell: Broken
        ├── ProgrammingError              refused, or not to be parsed: Refused, StatementSyntaxError
        └── NotSupportedError             `rollback`

The cause (`__cause__`) of each is calque's own error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Self

from calque.errors import AccessRefused, Broken, CalqueError, StatementSyntaxError, StateUnusable, Unavailable
from calque.statements.language import Language
from calque.statements.parse import Parameter
from calque.statements.result import NO_RESULT, AnyResult, Result, Row
from calque.statements.session import Session

apilevel = "2.0"
threadsafety = 1
"""Threads may share the module, not connections."""
paramstyle = "qmark"
Description = tuple[str, None, None, None, None, None, None]


class Warning(Exception):  # noqa: A001 - the names are PEP 249's
    pass


class Error(Exception):
    pass


class InterfaceError(Error):
    pass


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


class Connection:
    """A connection of PEP 249 over a session. Statements take effect at once, so `commit` does nothing and `rollback`
    is not supported."""

    def __init__(self, session: Session, language: Language) -> None:
        self._session: Session | None = session
        self.language = language

    def cursor(self) -> Cursor:
        self.session()
        return Cursor(self)

    def commit(self) -> None:
        self.session()

    def rollback(self) -> None:
        raise NotSupportedError("Statements take effect at once, and can't be taken back.")

    def close(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None

    def session(self) -> Session:
        """Return the session. Raises `ProgrammingError` when the connection was closed."""
        if self._session is None:
            raise ProgrammingError("The connection is closed.")
        return self._session

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Cursor:
    """A cursor of PEP 249. `execute` takes one statement; a `USE` holds for the whole connection."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._result: AnyResult = NO_RESULT
        self._rows: Iterator[Row] = iter(())
        self._is_closed = False

    @property
    def description(self) -> tuple[Description, ...] | None:
        return tuple((name, None, None, None, None, None, None) for name in self._result.columns) or None

    @property
    def rowcount(self) -> int:
        """The number of rows; -1 where there are none to give, and where rows come from an engine, because their number
        is not known before the last one."""
        return len(self._result.rows) if isinstance(self._result, Result) and self._result.columns else -1

    def execute(self, operation: str, parameters: Sequence[Parameter] = ()) -> Self:
        """Carry out one statement and return this cursor. A `?` in the statement stands for the next of `parameters`: a
        string, a number, or the name of a target. Raises the errors of the module's tree."""
        session = self._session()
        self._result, self._rows = NO_RESULT, iter(())
        try:
            self._result = self._result_of_one(operation, parameters, session)
            self._rows = iter(self._result.rows)
        except CalqueError as error:
            raise error_of(error) from error
        return self

    def executemany(self, operation: str, parameters: Sequence[Sequence[Parameter]]) -> Self:
        for each in parameters:
            self.execute(operation, each)
            if self._result.columns:
                raise ProgrammingError("executemany takes no statement that gives rows back.")
        return self

    def fetchone(self) -> Row | None:
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        return self._fetched(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        return self._fetched(None)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.fetchone, None)

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Do nothing, as PEP 249 permits."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 permits."""

    def close(self) -> None:
        self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _session(self) -> Session:
        if self._is_closed:
            raise ProgrammingError("The cursor is closed.")
        return self.connection.session()

    def _result_of_one(self, operation: str, parameters: Sequence[Parameter], session: Session) -> AnyResult:
        language = self.connection.language
        statements = language.parse(operation, parameters)
        if len(statements) != 1:
            raise ProgrammingError(f"execute takes one statement, not {len(statements)}.")
        return language.execute(statements[0].statement, session)

    def _fetched(self, most: int | None) -> list[Row]:
        """Return the next `most` rows; all that are left for None."""
        self._session()
        if not self._result.columns:
            raise ProgrammingError("There are no rows: execute a statement that gives rows back.")
        try:
            return list(islice(self._rows, most))
        except CalqueError as error:
            raise error_of(error) from error


def error_of(error: CalqueError) -> Error:
    """Return the error of PEP 249 for calque's own. A syntax error shows its place below the text."""
    match error:
        case StatementSyntaxError():
            return ProgrammingError(f"{error}\n{error.excerpt}")
        case Unavailable() | AccessRefused() | StateUnusable():
            return OperationalError(str(error))
        case Broken():
            return InternalError(str(error))
        case _:
            return ProgrammingError(str(error))
