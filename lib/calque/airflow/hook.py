"""The hook of Airflow, and the connections of the type `calque` that it reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

try:
    from airflow.sdk.bases.hook import BaseHook
except ImportError:
    from airflow.hooks.base import BaseHook

from calque.airflow.local import Local
from calque.airflow.places import Place, local_of, place_of
from calque.airflow.questions import Answer, AnswerState, DoneQuestion, Question, StatusQuestion, WaitQuestion, head_of
from calque.airflow.server import PORT
from calque.errors import CalqueError, Unavailable

EXAMPLE = {"tls": True, "ca": "/etc/calque/ca.pem"}


class CalqueHook(BaseHook):  # type: ignore[misc]
    """A hook over a connection of the type `calque`.

    Host and port are those of a running process (`[serve] address`), the password is its token. The extra may have
    `tls`, `ca`, `certificate` and `key`; and `config`, a configuration on the worker, for what a process does not do
    over HTTP, and for everything where no host is given.
    """

    conn_name_attr = "calque_conn_id"
    default_conn_name = "calque_default"
    conn_type = "calque"
    hook_name = "calque"

    def __init__(self, calque_conn_id: str = default_conn_name, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.calque_conn_id = calque_conn_id

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return what Airflow's form of a connection shows: host, port, token and extra."""
        return {
            "hidden_fields": ["schema", "login"],
            "relabeling": {"password": "Token"},
            "placeholders": {"host": "127.0.0.1", "port": str(PORT), "extra": json.dumps(EXAMPLE)},
        }

    def place(self) -> Place:
        """Return the process that the connection names, or else the configuration. Raises `Refused` for a connection
        that names neither."""
        return place_of(self.fields())

    def local(self) -> Local:
        """Return the configuration that the connection names. Raises `Refused` for a connection that names none."""
        return local_of(self.fields())

    def fields(self) -> Mapping[str, Any]:
        connection = self.get_connection(self.calque_conn_id)
        return {
            "name": self.calque_conn_id,
            "host": connection.host,
            "port": connection.port,
            "token": connection.password,
            "extra": connection.extra_dejson,
        }

    def ask(self, question: Question) -> Answer:
        return self.place().ask(question)

    def done(self, table: str, partition: Mapping[str, str], target: str | None = None) -> Answer:
        """Ask whether the set is done at `target`, or at the source where None is given."""
        return self.ask(DoneQuestion(table, dict(partition), target))

    def shows(self, target: str, event_id: int) -> Answer:
        """Ask whether the target shows the event."""
        return self.ask(WaitQuestion(target, event_id))

    def head(self, target: str) -> int:
        """Return the newest event of the target's source. Raises `Unavailable` where nothing answers, and `Refused` for
        an unknown target."""
        answer = self.ask(StatusQuestion())
        if answer.state is not AnswerState.YES:
            raise Unavailable(
                "The newest event of the source is not known", answer.reason, "Try again, or give event_id"
            )
        return head_of(answer.document, target)

    def test_connection(self) -> tuple[bool, str]:
        """Tell whether what the connection names answers, and in a sentence what it is."""
        try:
            answer = self.ask(StatusQuestion())
        except CalqueError as error:
            return False, str(error)
        if answer.state is not AnswerState.YES:
            return False, answer.reason
        names = ", ".join(sorted(answer.document.get("targets", {}))) or "none"
        return True, f"calque answers. Its targets are: {names}."
