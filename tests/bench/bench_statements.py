"""How long 10,000 statements take to parse, beside sqlglot's tokenizer over the same text.

A tokenizer does the least that any parser has to do: it makes neither a tree nor a value. Medians of processor time in
one process.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import sqlglot

from calque.app import APP
from calque.statements.split import split

SHOWS = ("SHOW TARGETS", "SHOW TABLES AT dr LIKE 'sales.*'", "SHOW EPOCHS AT dr", "USE sales")
SELECT = "SELECT a, b FROM sales.orders WHERE ds = '2024-01-01'"


def main(given: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--statements", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args(given)

    began = time.perf_counter()
    language = APP.language()
    language.parse("SHOW TARGETS")
    print(f"the language: {time.perf_counter() - began:.3f} s")
    print(f"{chosen.statements:,} statements, median of {chosen.rounds} rounds, seconds (µs for each)")
    for label, examples in (
        ("four of the first", SHOWS),
        ("one of each kind", [form.example for form in language.forms]),
        ("SELECT, for an engine", [SELECT]),
    ):
        text = ";\n".join(examples[number % len(examples)] for number in range(chosen.statements))
        print(f"{label} ({len(text) / 1e6:.2f} MB)")
        for name, call in (
            ("calque: split and parse", language.parse),
            ("calque: split alone", split),
            ("sqlglot: tokenize", tokenize),
        ):
            seconds = statistics.median(measured(call, text) for _ in range(chosen.rounds))
            print(f"  {name:<26}{seconds:>8.3f} ({seconds / chosen.statements * 1e6:>6,.1f})")


def tokenize(text: str) -> object:
    return sqlglot.tokenize(text, read="hive")


def measured(call: Callable[[str], object], text: str) -> float:
    """Seconds of processor time."""
    began = time.process_time()
    call(text)
    return time.process_time() - began


def test_parsing_is_measured() -> None:
    main(["--statements", "100", "--rounds", "1"])


if __name__ == "__main__":
    main()
