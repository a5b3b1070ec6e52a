"""Operators of Airflow that wait for a target, verify it, pause it and let it go on.

A process has no API for verifying and pausing but that of its own page. These operators do it on the worker, by the
configuration there, as the commands do: the worker needs calque, the configuration and its state folder, and runs as
the user of calque.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

try:
    from airflow.sdk.bases.operator import BaseOperator
    from airflow.sdk.exceptions import AirflowException
except ImportError:
    from airflow.exceptions import AirflowException
    from airflow.models.baseoperator import BaseOperator

from calque.airflow.hook import CalqueHook
from calque.airflow.local import Local
from calque.airflow.outcomes import completed, default_deferrable, is_yes
from calque.airflow.questions import event_number
from calque.airflow.triggers import POLL_SECONDS, CalqueWaitTrigger

WAIT_SECONDS = 3600.0


class CalqueWaitOperator(BaseOperator):  # type: ignore[misc]
    """An operator that waits until the target shows an event, and returns the target's position.

    Without `event_id` that is the newest event of the source at the beginning of the task: what earlier tasks wrote at
    the source can be read at the target then. Raises `AirflowException` after `wait_timeout` seconds. With `deferrable`
    the wait is that of a trigger, which takes no worker.
    """

    template_fields: Sequence[str] = ("calque_conn_id", "target", "event_id")

    def __init__(
        self,
        *,
        target: str,
        event_id: int | str | None = None,
        calque_conn_id: str = CalqueHook.default_conn_name,
        wait_timeout: float = WAIT_SECONDS,
        poll_interval: float = POLL_SECONDS,
        deferrable: bool | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.target, self.event_id, self.calque_conn_id = target, event_id, calque_conn_id
        self.wait_timeout, self.poll_interval = wait_timeout, poll_interval
        self.deferrable = default_deferrable() if deferrable is None else deferrable

    def execute(self, context: Any) -> int:  # noqa: ARG002 - Airflow's own signature
        hook = CalqueHook(self.calque_conn_id)
        event_id = hook.head(self.target) if self.event_id is None else event_number(self.event_id)
        deadline = time.monotonic() + self.wait_timeout
        while not is_yes(answer := hook.shows(self.target, event_id), self.log):
            if self.deferrable:
                self.defer(
                    trigger=CalqueWaitTrigger(
                        calque_conn_id=self.calque_conn_id,
                        target=self.target,
                        event_id=event_id,
                        poll_interval=self.poll_interval,
                    ),
                    method_name="execute_complete",
                    timeout=timedelta(seconds=self.wait_timeout),
                )
            if time.monotonic() >= deadline:
                raise AirflowException(f"After {self.wait_timeout:g} s: {answer.reason}")
            time.sleep(self.poll_interval)
        return int(answer.document["position"])

    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> int:  # noqa: ARG002 - Airflow's own
        return int(completed(event)["position"])


class CalqueVerifyOperator(BaseOperator):  # type: ignore[misc]
    """An operator that compares a target with its source on the worker, and returns what was found.

    `data` says what of files is compared: none, size or checksum. Raises `AirflowException` for differences, and where
    tables are set aside that could not be compared, unless `allow_set_aside` is given. `config` is the configuration on
    the worker; without it the connection's extra names one.
    """

    template_fields: Sequence[str] = ("calque_conn_id", "config", "target", "tables")

    def __init__(
        self,
        *,
        target: str,
        tables: Sequence[str] = (),
        data: str = "size",
        allow_set_aside: bool = False,
        config: str | None = None,
        calque_conn_id: str = CalqueHook.default_conn_name,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.target, self.tables, self.data = target, list(tables), data
        self.allow_set_aside, self.config, self.calque_conn_id = allow_set_aside, config, calque_conn_id

    def execute(self, context: Any) -> dict[str, Any]:  # noqa: ARG002 - Airflow's own signature
        found = local_for(self.config, self.calque_conn_id).verify(self.target, self.tables, self.data)
        for row in found["differences"]:
            self.log.error("%s", row)
        if found["difference_count"]:
            problem = f"{self.target} differs from the source in {found['difference_count']}"
            raise AirflowException(f"{problem} at event {found['event_id']}. See the log, and `calque verify`.")
        if found["set_aside_count"] and not self.allow_set_aside:
            problem = f"{found['set_aside_count']} of {self.target} could not be compared: they are set aside"
            raise AirflowException(f"{problem}. See `calque status`.")
        return found


class CalquePauseOperator(BaseOperator):  # type: ignore[misc]
    """An operator that holds a target back, or its tables that match patterns, as `calque pause` does.

    `config` is the configuration on the worker; without it the connection's extra names one.
    """

    template_fields: Sequence[str] = ("calque_conn_id", "config", "target", "tables")

    def __init__(
        self,
        *,
        target: str,
        tables: Sequence[str] = (),
        config: str | None = None,
        calque_conn_id: str = CalqueHook.default_conn_name,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.target, self.tables, self.config, self.calque_conn_id = target, list(tables), config, calque_conn_id

    def execute(self, context: Any) -> None:  # noqa: ARG002 - Airflow's own signature
        local_for(self.config, self.calque_conn_id).pause(self.target, self.tables)


class CalqueResumeOperator(BaseOperator):  # type: ignore[misc]
    """An operator that lets a target go on, or its tables that match patterns, as `calque resume` does.

    Tables that were paused by patterns stay paused when the target goes on: name the same patterns. `config` is the
    configuration on the worker; without it the connection's extra names one.
    """

    template_fields: Sequence[str] = ("calque_conn_id", "config", "target", "tables")

    def __init__(
        self,
        *,
        target: str,
        tables: Sequence[str] = (),
        config: str | None = None,
        calque_conn_id: str = CalqueHook.default_conn_name,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.target, self.tables, self.config, self.calque_conn_id = target, list(tables), config, calque_conn_id

    def execute(self, context: Any) -> None:  # noqa: ARG002 - Airflow's own signature
        local_for(self.config, self.calque_conn_id).resume(self.target, self.tables)


def local_for(config: str | None, calque_conn_id: str) -> Local:
    return Local(config) if config is not None else CalqueHook(calque_conn_id).local()
