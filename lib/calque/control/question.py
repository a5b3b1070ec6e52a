"""The form of a question that a command asks of a running process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calque.wiring.wiring import Wiring

Question = Callable[[Wiring, Mapping[str, Any]], Any]
"""A function that answers a question: it gets the configured world and the question's arguments, and returns a JSON
value. It may raise `CalqueError`, with which the command then ends."""
HttpQuestion = Callable[[Wiring, Mapping[str, str]], tuple[int, Any]]
"""A function that answers a request at a path of its own: it gets the configured world and the request's parameters,
and returns the status of HTTP and a JSON value. It may raise `CalqueError`."""
