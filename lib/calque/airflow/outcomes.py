"""The step from an answer of calque to the outcome of a task of Airflow."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

try:
    from airflow.sdk.configuration import conf
    from airflow.sdk.exceptions import AirflowException, AirflowFailException
except ImportError:
    from airflow.configuration import conf
    from airflow.exceptions import AirflowException, AirflowFailException

from calque.airflow.questions import Answer, AnswerState, answer_from


def default_deferrable() -> bool:
    """Tell whether tasks are deferrable that do not say so themselves (`default_deferrable` of Airflow)."""
    return bool(conf.getboolean("operators", "default_deferrable", fallback=False))


def is_yes(answer: Answer, log: logging.Logger) -> bool:
    """Tell whether the answer is a yes; the reason of a `NOT_YET` is logged. Raises `AirflowFailException`, after which
    Airflow does not try again, for an answer that another try does not change."""
    if answer.state is AnswerState.REFUSED:
        raise AirflowFailException(answer.reason)
    if answer.state is AnswerState.NOT_YET:
        log.info("not yet: %s", answer.reason)
    return answer.state is AnswerState.YES


def completed(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the document of the answer that a trigger's event has. Raises `AirflowFailException` where it is refused,
    and `AirflowException` where it is no yes."""
    answer = answer_from(event)
    if answer.state is AnswerState.REFUSED:
        raise AirflowFailException(answer.reason)
    if answer.state is not AnswerState.YES:
        raise AirflowException(answer.reason)
    return answer.document
