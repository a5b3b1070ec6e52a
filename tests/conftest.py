"""What all tests share: how many examples are tried, and which, the order, and an environment that steers nothing.

`--hypothesis-profile=check` tries few examples, `test`, which goes without saying, many, `prove` very many. Which they
are is decided by `CALQUE_SEED`: the day where it is not set, and in `prove` others each time. A run says it at its
beginning and at its end; with that seed, and with the `PYTHONHASHSEED` that `make` sets, another does the same. With
`CALQUE_SEED=0` the examples are the same ones for ever: a build server judges a change by them, not by its day. How
many histories the tests over whole worlds play is for `CALQUE_HISTORIES=N` to say. Tests with the marker `prove` run in
`prove` alone.
"""

from __future__ import annotations

import logging
import os
import signal
import tempfile
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from support.runs import proofs
from support.runs.durations import Durations
from support.runs.seeds import HISTORIES, SEED, seed, settle_seed

pytest_plugins = ["support.fixtures"]
EXAMPLES = {"check": 5, "test": 40, "prove": int(os.environ.get("CALQUE_EXAMPLES", "500"))}
PROVING_HISTORIES = "2000"
UNDOING_SECONDS = 120
STEERING = ("CALQUE_FAILPOINT", "CALQUE_SPARK_ARCHIVE", "HIVE_CONF_DIR", "METASTORE_CONF_DIR", "SPARK_HOME")
"""Variables that would change what the tests try."""

# Services of other tests make a machine slow at times: neither an example nor its making has a deadline.
UNHURRIED = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
for name, examples in EXAMPLES.items():
    settings.register_profile(name, UNHURRIED, max_examples=examples, derandomize=os.environ.get(SEED) == "0")
settings.load_profile("test")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    for variable in STEERING:
        os.environ.pop(variable, None)
    proving = config.option.hypothesis_profile == "prove"
    if proving:
        os.environ.setdefault(HISTORIES, PROVING_HISTORIES)
    settle_seed(proving=proving)
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(seed())
    config.pluginmanager.register(Durations(config), "calque-durations")
    config.pluginmanager.register(proofs, "calque-proofs")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Processes that tests kill leave the folders of their sockets: these lie in one that goes with the session."""
    folder = tempfile.TemporaryDirectory(prefix="cq-", ignore_cleanup_errors=True)
    os.environ["XDG_RUNTIME_DIR"] = folder.name
    session.config.add_cleanup(folder.cleanup)


@pytest.fixture(autouse=True)
def level_of_the_log() -> Iterator[None]:
    """`calque run` within the process of a test sets it, and some tests want none."""
    log = logging.getLogger("calque")
    before = log.level
    yield
    log.setLevel(before)
    logging.disable(logging.NOTSET)


def pytest_report_header() -> str:
    return f"what is tried is chosen by {choice()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests record as `chosen`, that they tried in place of everything."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    said = sorted({value for report in reports for name, value in report.user_properties if name == "chosen"})
    for line in (*said, f"The same again: {choice()}"):
        terminalreporter.write_line(line)


def choice() -> str:
    return f"{SEED}={seed()} PYTHONHASHSEED={os.environ.get('PYTHONHASHSEED', 'random')}"


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
