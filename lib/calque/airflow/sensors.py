"""Sensors of Airflow: tasks that wait until a set of partitions is done, or until a target shows an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

try:
    from airflow.sdk.bases.sensor import BaseSensorOperator
except ImportError:
    from airflow.sensors.base import BaseSensorOperator

from calque.airflow.hook import CalqueHook
from calque.airflow.outcomes import completed, default_deferrable, is_yes
from calque.airflow.questions import event_number
from calque.airflow.triggers import CalqueDoneTrigger, CalqueWaitTrigger

__all__ = ["BaseSensorOperator", "CalqueDoneSensor", "CalqueWaitSensor", "SetDoneSensor"]


class CalqueDoneSensor(BaseSensorOperator):  # type: ignore[misc]
    """A sensor that succeeds when the set is done at `target`, or at the source where None is given.

    `table`, `partition` and `target` may be templates: partition={"ds": "{{ ds }}"}. With `deferrable` the wait is that
    of a trigger, which takes no worker. `poke_interval` are the seconds between two questions in both cases.
    """

    template_fields: Sequence[str] = ("calque_conn_id", "table", "partition", "target")

    def __init__(
        self,
        *,
        table: str,
        partition: Mapping[str, str],
        target: str | None = None,
        calque_conn_id: str = CalqueHook.default_conn_name,
        deferrable: bool | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.table, self.partition, self.target = table, dict(partition), target
        self.calque_conn_id = calque_conn_id
        self.deferrable = default_deferrable() if deferrable is None else deferrable

    def poke(self, context: Any) -> bool:  # noqa: ARG002 - Airflow's own signature
        return is_yes(CalqueHook(self.calque_conn_id).done(self.table, self.partition, self.target), self.log)

    def execute(self, context: Any) -> Any:
        if not self.deferrable:
            return super().execute(context)
        if not self.poke(context):
            trigger = CalqueDoneTrigger(
                calque_conn_id=self.calque_conn_id,
                table=self.table,
                partition=self.partition,
                target=self.target,
                poll_interval=self.poke_interval,
            )
            self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))
        return None

    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> None:  # noqa: ARG002 - Airflow's own
        completed(event)


class CalqueWaitSensor(BaseSensorOperator):  # type: ignore[misc]
    """A sensor that succeeds when the target shows the event.

    `event_id` and `target` may be templates. With `deferrable` the wait is that of a trigger, which takes no worker.
    `poke_interval` are the seconds between two questions in both cases.
    """

    template_fields: Sequence[str] = ("calque_conn_id", "target", "event_id")

    def __init__(
        self,
        *,
        target: str,
        event_id: int | str,
        calque_conn_id: str = CalqueHook.default_conn_name,
        deferrable: bool | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.target, self.event_id, self.calque_conn_id = target, event_id, calque_conn_id
        self.deferrable = default_deferrable() if deferrable is None else deferrable

    def poke(self, context: Any) -> bool:  # noqa: ARG002 - Airflow's own signature
        return is_yes(CalqueHook(self.calque_conn_id).shows(self.target, event_number(self.event_id)), self.log)

    def execute(self, context: Any) -> Any:
        if not self.deferrable:
            return super().execute(context)
        if not self.poke(context):
            trigger = CalqueWaitTrigger(
                calque_conn_id=self.calque_conn_id,
                target=self.target,
                event_id=event_number(self.event_id),
                poll_interval=self.poke_interval,
            )
            self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))
        return None

    def execute_complete(self, context: Any, event: Mapping[str, Any]) -> None:  # noqa: ARG002 - Airflow's own
        completed(event)


class SetDoneSensor(BaseSensorOperator):  # type: ignore[misc]
    """A sensor of Airflow that succeeds when the set is done at `target`, or at the source where None is given.

    All arguments but `target` may be templates: partition={"ds": "{{ ds }}"}. Where its task runs, the configuration
    and the state folder are needed; `CalqueDoneSensor` asks a running process in their place.
    """

    template_fields: Sequence[str] = ("config", "table", "partition")

    def __init__(
        self, *, config: str, table: str, partition: Mapping[str, str], target: str | None = None, **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self.config, self.table, self.partition, self.target = config, table, dict(partition), target

    def poke(self, context: Any) -> bool:  # noqa: ARG002 - Airflow's own signature
        from calque.done import check
        from calque.plugins.marks.core import Done

        verdict = check(self.config, self.table, self.partition, target=self.target)
        if not isinstance(verdict, Done):
            self.log.info("not done: %s", verdict.reason)
        return isinstance(verdict, Done)
