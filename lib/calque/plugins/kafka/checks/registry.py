"""The look of `calque check` at the schema registry of a journal on Kafka: whether it has, or will take, the schema of
events."""

from __future__ import annotations

from calque.engine.check.findings import Findings, Severity
from calque.errors import AccessRefused, Refused, Unavailable
from calque.plugins.kafka.checks.topics import WHERE
from calque.ports.services import SchemaRegistryInfo


def check_registry(registry: SchemaRegistryInfo, findings: Findings) -> None:
    """Ask the registry for the schema of events and add what is found. Nothing is changed there."""
    try:
        schema_id = registry.registered_id()
        is_accepted = schema_id is not None or registry.accepts()
    except (Unavailable, Refused, AccessRefused) as error:
        findings.refused(WHERE, error)
        return
    if schema_id is not None:
        what = f"The schema registry has the schema of events, as id {schema_id} of {registry.subject}"
        findings.add_expected(WHERE, what)
    elif not is_accepted:
        findings.add(
            WHERE,
            Severity.ERROR,
            f"The schema of events does not fit what the schema registry has under {registry.subject}",
            "The registry holds it to be incompatible with the newest one there",
            "Remove what stands there if nobody needs it, or name another topic below [journal]",
        )
    else:
        findings.add(
            WHERE,
            Severity.WARNING,
            f"The schema registry at {registry.url} has nothing under {registry.subject} that events are written by",
            "calque registers their schema at the first append, if it may",
            "Say `calque journal create` to register it now",
        )
