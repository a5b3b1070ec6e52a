"""A sensor for Apache Airflow: a task that waits until a set of partitions is done. The module needs
`apache-airflow`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

try:
    from airflow.sdk.bases.sensor import BaseSensorOperator
except ImportError:
    from airflow.sensors.base import BaseSensorOperator

from calque.done import check
from calque.plugins.marks.core import Done


class SetDoneSensor(BaseSensorOperator):  # type: ignore[misc]
    """A sensor of Airflow that succeeds when the set is done at `target`, or at the source where None is given.

    All arguments but `target` may be templates: partition={"ds": "{{ ds }}"}. Where its task runs, the configuration
    and the state folder are needed.
    """

    template_fields: Sequence[str] = ("config", "table", "partition")

    def __init__(
        self, *, config: str, table: str, partition: Mapping[str, str], target: str | None = None, **arguments: Any
    ) -> None:
        super().__init__(**arguments)
        self.config, self.table, self.partition, self.target = config, table, dict(partition), target

    def poke(self, context: Any) -> bool:  # noqa: ARG002 - Airflow's own signature
        verdict = check(self.config, self.table, self.partition, target=self.target)
        if not isinstance(verdict, Done):
            self.log.info("not done: %s", verdict.reason)
        return isinstance(verdict, Done)
