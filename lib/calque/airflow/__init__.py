"""A provider for Apache Airflow: a connection, and sensors, triggers and operators that wait for a target, verify it
and pause it.

`questions`, `server` and `local` need no Airflow: they ask a running process over HTTP, or the state folder. `hook`,
`sensors`, `triggers` and `operators` are Airflow's own forms over them and need `apache-airflow`, which brings the
client of HTTP that triggers use. Nothing here imports the rest of calque before local mode needs it, so that a worker
that only asks over HTTP needs none of calque's dependencies.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calque.airflow.hook import CalqueHook
    from calque.airflow.operators import (
        CalquePauseOperator,
        CalqueResumeOperator,
        CalqueVerifyOperator,
        CalqueWaitOperator,
    )
    from calque.airflow.sensors import BaseSensorOperator, CalqueDoneSensor, CalqueWaitSensor, SetDoneSensor
    from calque.airflow.triggers import CalqueDoneTrigger, CalqueWaitTrigger

FOUND_IN = {
    "BaseSensorOperator": "sensors",
    "CalqueDoneSensor": "sensors",
    "CalqueDoneTrigger": "triggers",
    "CalqueHook": "hook",
    "CalquePauseOperator": "operators",
    "CalqueResumeOperator": "operators",
    "CalqueVerifyOperator": "operators",
    "CalqueWaitOperator": "operators",
    "CalqueWaitSensor": "sensors",
    "CalqueWaitTrigger": "triggers",
    "SetDoneSensor": "sensors",
}
__all__ = [
    "BaseSensorOperator",
    "CalqueDoneSensor",
    "CalqueDoneTrigger",
    "CalqueHook",
    "CalquePauseOperator",
    "CalqueResumeOperator",
    "CalqueVerifyOperator",
    "CalqueWaitOperator",
    "CalqueWaitSensor",
    "CalqueWaitTrigger",
    "SetDoneSensor",
]


def __getattr__(name: str) -> object:
    """Load a class when it is asked for."""
    from importlib import import_module

    if name in FOUND_IN:
        return getattr(import_module(f"calque.airflow.{FOUND_IN[name]}"), name)
    raise AttributeError(f"module 'calque.airflow' has no attribute {name!r}")
