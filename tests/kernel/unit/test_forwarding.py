"""What is passed on by the classes that wrappers of ports are made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import pytest

from calque import ports
from calque.plugins.grants import ports as grants
from calque.plugins.marks import ports as marks
from calque.ports import forwarding

FORWARDING = {
    ports.Catalog: forwarding.ForwardingCatalog,
    ports.CatalogReader: forwarding.ForwardingCatalogReader,
    ports.EventFiles: forwarding.ForwardingEventFiles,
    ports.EventLog: forwarding.ForwardingEventLog,
    ports.EvidenceStore: forwarding.ForwardingEvidenceStore,
    ports.Gaps: forwarding.ForwardingGaps,
    ports.Journal: forwarding.ForwardingJournal,
    ports.Leases: forwarding.ForwardingLeases,
    ports.Commits: forwarding.ForwardingCommits,
    ports.Ledger: forwarding.ForwardingLedger,
    marks.MarkStore: marks.ForwardingMarkStore,
    marks.PartitionEvents: marks.ForwardingPartitionEvents,
    ports.Pins: forwarding.ForwardingPins,
    grants.Privileges: grants.ForwardingPrivileges,
    ports.ReplicatedTransactions: forwarding.ForwardingReplicatedTransactions,
    ports.Scans: forwarding.ForwardingScans,
    ports.Storage: forwarding.ForwardingStorage,
}
OF_CATALOG = {ports.Databases, ports.Tables, ports.Partitions, ports.Functions, ports.Facets}
METHODS = [
    (port, method)
    for port in FORWARDING
    for method, _ in inspect.getmembers(port, inspect.isfunction)
    if not method.startswith("_")
]


class Recorder:
    """Any port: what was called, by the names of the port's parameters, and what was answered."""

    def __init__(self, port: type) -> None:
        self.port = port
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.answer = object()

    def __getattr__(self, method: str) -> Callable[..., object]:
        def called(*arguments: Any, **named: Any) -> object:
            bound = inspect.signature(getattr(self.port, method)).bind(self, *arguments, **named)
            bound.apply_defaults()
            self.calls.append((method, {name: value for name, value in bound.arguments.items() if name != "self"}))
            return self.answer

        return called


def parameters(port: type, method: str) -> list[inspect.Parameter]:
    return list(inspect.signature(getattr(port, method)).parameters.values())[1:]


def test_every_port_that_is_wrapped_has_a_forwarding_class() -> None:
    known = {
        thing
        for module in (ports, marks, grants)
        for _, thing in inspect.getmembers(module, inspect.isclass)
        if getattr(thing, "_is_protocol", False)
    }
    only_read = {ports.Clock, ports.TransactionReader}
    assert {*FORWARDING} == known - {*only_read, forwarding.Interceptor, Protocol, *OF_CATALOG}


@pytest.mark.parametrize(("port", "method"), METHODS, ids=lambda value: getattr(value, "__name__", value))
def test_a_forwarding_class_passes_every_argument_and_the_answer_on(port: type, method: str) -> None:
    wanted = {parameter.name: object() for parameter in parameters(port, method)}
    by_name_only = {one.name for one in parameters(port, method) if one.kind is one.KEYWORD_ONLY}
    in_order = [value for name, value in wanted.items() if name not in by_name_only]
    recorder = Recorder(port)
    call = getattr(FORWARDING[port](recorder), method)
    answers = [call(*in_order, **{name: wanted[name] for name in by_name_only}), call(**wanted)]
    assert recorder.calls == [(method, wanted)] * 2
    assert answers == [None if returns_nothing(port, method) else recorder.answer] * 2


@pytest.mark.parametrize(("port", "method"), METHODS, ids=lambda value: getattr(value, "__name__", value))
def test_a_forwarding_class_leaves_out_what_may_be_left_out(port: type, method: str) -> None:
    needed = {one.name: object() for one in parameters(port, method) if one.default is one.empty}
    left_out = {one.name: one.default for one in parameters(port, method) if one.default is not one.empty}
    recorder = Recorder(port)
    getattr(FORWARDING[port](recorder), method)(**needed)
    assert recorder.calls == [(method, needed | left_out)]


@pytest.mark.parametrize(("port", "method"), METHODS, ids=lambda value: getattr(value, "__name__", value))
def test_an_interceptor_learns_the_name_of_the_method_that_it_calls(port: type, method: str) -> None:
    intercepted: list[str] = []

    def intercept(name: str, call: Callable[..., object], /, *arguments: object, **named: object) -> object:
        intercepted.append(name)
        return call(*arguments, **named)

    recorder = Recorder(port)
    given = {one.name: object() for one in parameters(port, method)}
    getattr(FORWARDING[port](recorder, intercept), method)(**given)
    assert intercepted == [name for name, _ in recorder.calls] == [method]


def returns_nothing(port: type, method: str) -> bool:
    return inspect.signature(getattr(port, method)).return_annotation == "None"
