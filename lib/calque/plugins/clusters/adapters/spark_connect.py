"""The engine of a cluster over Spark Connect, by pyspark's own client."""

from __future__ import annotations

import logging
import socket
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from calque.errors import CalqueError, Refused, Unavailable
from calque.plugins.clusters.ports import EngineRows

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

DEFAULT_PORT = 15002
CONNECT_SECONDS = 10.0
RETRIES, LONGEST_RETRY_MS = 5, 2_000
"""The most retries of a call that the engine does not answer, and the longest pause between two, in milliseconds: some
seconds in all."""
STACK_TRACE = "JVM stacktrace:"
NOT_ANSWERING = (
    "StatusCode.UNAVAILABLE",
    "StatusCode.DEADLINE_EXCEEDED",
    "stopped SparkContext",
    "SparkContext was shut down",
)
"""Texts in the errors of an engine that is gone or going."""


class SparkConnectEngine:
    """A session at the engine at `url` (`sc://host:port`). The first statement opens it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session: SparkSession | None = None
        self._database: str | None = None

    def run(self, statement: str, database: str | None, parameters: Sequence[str | int] = ()) -> EngineRows:
        session = self.session()
        with self._own_errors():
            if database is not None and database != self._database:
                session.sql(f"USE `{database.replace('`', '``')}`")
                self._database = database
            frame = session.sql(statement, args=list(parameters)) if parameters else session.sql(statement)
            columns = tuple(frame.columns)
        return EngineRows(columns, self._rows(frame) if columns else iter(()))

    def close(self) -> None:
        if self._session is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._session.stop()
            self._session = None

    def session(self) -> SparkSession:
        if self._session is None:
            try:
                from pyspark.sql.connect.client.retries import DefaultPolicy
                from pyspark.sql.connect.session import SparkSession as Session
            except ImportError as error:
                why = f"Spark Connect's client needs packages: {' '.join(str(error).split())}"
                raise Refused(
                    "No statement can be sent to an engine", why, "Say pip install 'calque-replicator[clusters]'"
                ) from error
            # pyspark logs each error that it raises.
            logging.getLogger("SQLQueryContextLogger").disabled = True
            self._require_answer()
            with self._own_errors():
                session = Session.builder.remote(self.url).create()
                session.client.set_retry_policies([DefaultPolicy(max_retries=RETRIES, max_backoff=LONGEST_RETRY_MS)])
            self._session = session
        return self._session

    def _rows(self, frame: Any) -> Iterator[tuple[object, ...]]:
        is_whole = False
        try:
            with self._own_errors():
                for row in frame.toLocalIterator():
                    yield tuple(row)
            is_whole = True
        finally:
            if not is_whole and self._session is not None:
                self._interrupt(self._session)

    def _interrupt(self, session: SparkSession) -> None:
        """Cancel the statement that runs, because the caller stopped before the last row."""
        try:
            with self._own_errors():
                session.interruptAll()
        except CalqueError:
            logging.getLogger(__name__).debug("The statement at %s could not be interrupted", self.url)

    def _require_answer(self) -> None:
        """Connect to the engine's port and close the connection again. Raises `Unavailable` after `CONNECT_SECONDS`,
        because gRPC itself waits long for a server that is not there."""
        parts = urlsplit(self.url)
        host, port = parts.hostname or "", parts.port or DEFAULT_PORT
        try:
            socket.create_connection((host, port), CONNECT_SECONDS).close()
        except OSError as error:
            raise self._unavailable(str(error)) from error

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        """Raise the engine's errors as calque's, with the engine's own words: `Unavailable` where it does not answer,
        else `Refused`."""
        import grpc
        from pyspark.errors import PySparkException

        try:
            with warnings.catch_warnings():
                # pyspark warns before it gives up and raises.
                warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
                yield
        except PySparkException as error:
            words = " ".join(str(error).partition(STACK_TRACE)[0].split())
            if any(sign in words for sign in NOT_ANSWERING):
                raise self._lost(words) from error
            raise Refused(f"{self.url} refused the statement", words) from error
        except grpc.RpcError as error:
            raise self._lost(" ".join(str(error.details() if hasattr(error, "details") else error).split())) from error

    def _lost(self, why: str) -> Unavailable:
        """Forget the session, which is gone with the engine, so that the next statement opens another one, and return
        the error to raise."""
        self._session = self._database = None
        return self._unavailable(why)

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(
            f"No engine answers at {self.url}", why, "Check that Spark Connect runs there, and try again"
        )
