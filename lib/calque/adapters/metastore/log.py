"""The notification log of a metastore."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.faults import settled
from calque.adapters.metastore.messages import (
    GET_CURRENT_EVENT_ID,
    GET_NEXT_NOTIFICATION,
    Call,
    Current,
    EventRequest,
    Events,
    Fault,
)
from calque.model.journal import Event
from calque.model.names import EventId


class HiveLog:
    """`ports.EventLog` over Thrift. Messages come as the server's encoder wrote them (`message_format` says which).

    2.3 takes every row behind `after` into its memory whatever the limit, and may give two events one id (facts of
    HIVE-16886): never read it from far behind.
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    def current(self) -> EventId:
        answer: Current = self._call(GET_CURRENT_EVENT_ID)
        return answer.event_id

    def read(self, after: EventId, limit: int) -> Sequence[Event]:
        if limit <= 0:
            return ()
        answer: Events = self._call(GET_NEXT_NOTIFICATION, EventRequest(after, limit))
        return answer.events

    def _call(self, call: Call, *arguments: Any) -> Any:
        try:
            return self.client.call(call, *arguments)
        except Fault as fault:
            raise settled(fault, call) from fault
