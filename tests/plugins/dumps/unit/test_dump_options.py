"""`plugins.dumps.core.options`: the keys of WITH."""

from __future__ import annotations

import pytest

from calque.errors import Refused
from calque.plugins.dumps.core.layout import DumpLayout
from calque.plugins.dumps.core.options import DUMP_KEYS, LOAD_KEYS, dump_options, known_options


def test_keys_that_mean_something_are_told_from_those_that_do_not() -> None:
    options = {
        "hive.repl.dump.metadata.only": "true",
        "hive.repl.parallel.copy.tasks": "8",
        "distcp.options.m": "4",
        "hive.repl.failover.start": "false",
    }
    known = known_options(options, DUMP_KEYS)
    assert known.values == {"hive.repl.dump.metadata.only": "true"}
    assert known.meaningless == ("hive.repl.parallel.copy.tasks", "distcp.options.m", "hive.repl.failover.start")
    assert known_options({"hive.repl.dump.metadata.only": "true"}, LOAD_KEYS).meaningless


def test_an_unknown_key_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refused, match=r"unknown key 'hive.repl.include.external.table'.*hive.repl.include.external.t"):
        known_options({"hive.repl.include.external.table": "true"}, DUMP_KEYS)
    with pytest.raises(Refused, match="Keys are such as"):
        known_options({"x": "y"}, DUMP_KEYS)
    with pytest.raises(Refused, match=r"'hive\.repl\.failover\.start' is not built"):
        known_options({"hive.repl.failover.start": "true"}, DUMP_KEYS)


def test_a_dump_without_options_is_lazy_and_hive_4s() -> None:
    options = dump_options(known_options({}, DUMP_KEYS))
    assert (options.layout, options.mode, options.copies, options.data) == (DumpLayout.HIVE_4, None, False, True)
    assert (options.external, options.external_data, options.retain, options.batch) == (True, True, None, 10_000)


def test_options_of_a_dump_are_read() -> None:
    with_keys = {
        "calque.repl.layout": "3",
        "calque.repl.mode": "hive4",
        "hive.repl.dump.metadata.only": "TRUE",
        "hive.repl.run.data.copy.tasks.on.target": "false",
        "hive.repl.retain.prev.dump.dir": "true",
    }
    options = dump_options(known_options(with_keys, DUMP_KEYS))
    assert (options.layout, options.mode, options.retain) == (DumpLayout.HIVE_3, "hive4", 3)
    assert (options.data, options.copies, options.external_data) == (False, False, False)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("calque.repl.layout", "5"),
        ("hive.repl.dump.metadata.only", "yes"),
        ("hive.repl.approx.max.load.tasks", "0"),
        ("hive.repl.approx.max.load.tasks", "many"),
    ],
)
def test_a_value_that_its_key_does_not_take_is_refused(key: str, value: str) -> None:
    with pytest.raises(Refused, match=key):
        dump_options(known_options({key: value}, DUMP_KEYS))
