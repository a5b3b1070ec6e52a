"""What all tests share: how many examples property tests try, and an environment that steers nothing.

`--hypothesis-profile=check` tries few examples, `test`, which goes without saying, many, and both the same ones each
time; `prove` tries very many, and others each time. How many histories the tests over whole worlds play is for
`CALQUE_HISTORIES=N` to say, which is the first for `CALQUE_SEED=N`.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = {"check": 15, "test": 100, "prove": 20_000}
PROVING_HISTORIES = "2000"
STEERING = ("CALQUE_FAILPOINT", "CALQUE_SPARK_ARCHIVE", "HIVE_CONF_DIR", "METASTORE_CONF_DIR", "SPARK_HOME")
"""Variables that would change what the tests try."""

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
