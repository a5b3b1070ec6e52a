"""What all tests share: how many examples property tests try, and an environment that steers nothing.

`--hypothesis-profile=check` tries few examples, `test`, which goes without saying, many, and both the same ones each
time; `prove` tries very many, and others each time. How many histories the tests over whole worlds play is for
`CALQUE_HISTORIES=N` to say, which is the first for `CALQUE_SEED=N`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = {"check": 15, "test": 100, "prove": 20_000}
PROVING_HISTORIES = "2000"
UNDOING_SECONDS = 120
STEERING = ("CALQUE_FAILPOINT", "CALQUE_SPARK_ARCHIVE", "HIVE_CONF_DIR", "METASTORE_CONF_DIR", "SPARK_HOME")
"""Variables that would change what the tests try."""

LONG = (
    *("unit/test_mutants.py", "property/test_laws.py", "property/test_facets.py", "property/test_policies.py"),
    *(
        "property/test_plans.py",
        "property/test_bootstraps.py",
        "property/test_delta_tables.py",
        "whole/test_crashes.py",
    ),
    *("property/test_decode.py", "property/test_adopt.py", "property/test_gaps.py", "property/test_copy_faults.py"),
    *("integration/test_flow.py", "integration/test_operating.py", "integration/test_delta_tables.py"),
    *("integration/test_demo.py", "integration/test_faults.py"),
    *("integration/test_kafka_topics.py", "integration/test_lease.py", "integration/test_live.py"),
    "integration/test_recorded_states.py",
    *(
        "integration/test_gaps.py",
        "integration/test_scans.py",
        "integration/test_objects.py",
        "integration/test_hdfs.py",
    ),
    *("integration/test_sandbox.py", "integration/test_bootstrap_under_load.py", "integration/test_spark_sources.py"),
    *("integration/test_journal_commands.py", "integration/test_awkward.py", "integration/test_adopt.py"),
    *("integration/test_health.py", "integration/test_failpoints.py", "integration/test_plan.py"),
    *("integration/test_layout.py", "integration/test_reload.py", "integration/test_iceberg.py"),
    *("integration/test_jobs.py", "integration/test_kafka.py", "integration/test_check.py"),
    *("integration/test_wheel.py", "integration/test_bootstrap_goes_on.py", "integration/test_demo_writer.py"),
    *("integration/test_open_epoch.py", "property/test_recorded.py"),
)
"""Files that begin before all others, the longest first, so that several processes end together."""

# Services of other tests make a machine slow at times: neither an example nor its making has a deadline.
UNHURRIED = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
for name, examples in EXAMPLES.items():
    settings.register_profile(name, UNHURRIED, max_examples=examples, derandomize=name != "prove")
settings.load_profile("test")


def pytest_configure(config: pytest.Config) -> None:
    for variable in STEERING:
        os.environ.pop(variable, None)
    if config.getoption("--hypothesis-profile", default=None) == "prove":
        os.environ.setdefault("CALQUE_HISTORIES", PROVING_HISTORIES)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {file: place for place, file in enumerate(LONG)}
    items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(LONG)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None, None, None]:
    """pytest-timeout lets go of a test that failed: what undoes it has a limit all the same."""
    if any(signal.getitimer(signal.ITIMER_REAL)):
        return (yield)

    def late(*_: object) -> None:
        pytest.fail(f"Undoing a failed test took longer than {UNDOING_SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, UNDOING_SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
