"""The metadata by which Airflow lists calque among its providers, and `calque` among its types of connections."""

from __future__ import annotations

from typing import Any

from calque.airflow import FOUND_IN

DISTRIBUTION = "calque-replicator"
"""The name of the distribution, which Airflow compares with this metadata."""


def provider_info() -> dict[str, Any]:
    """Return the metadata. Airflow finds this function by the entry point `apache_airflow_provider`."""
    hook = {"integration-name": "calque", "python-modules": ["calque.airflow.hook"]}
    return {
        "package-name": DISTRIBUTION,
        "name": "calque",
        "description": "Waits for replicas of Hive tables, verifies and pauses them.",
        "integrations": [{"integration-name": "calque", "tags": ["service"]}],
        "hooks": [hook],
        **{
            kind: [{"integration-name": "calque", "python-modules": [f"calque.airflow.{kind}"]}]
            for kind in sorted(set(FOUND_IN.values()) - {"hook"})
        },
        "connection-types": [{"connection-type": "calque", "hook-class-name": "calque.airflow.hook.CalqueHook"}],
    }
