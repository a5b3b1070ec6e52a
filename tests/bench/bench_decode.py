"""Processor time per event of `keys_of` and of a full decode, against a bare `orjson.loads` of the same bytes.

The alteration is a recorded one of 5 KB; the addition is a recorded one with its partition repeated.
"""

from __future__ import annotations

import argparse
import base64
import dataclasses
import gzip
import json
import time
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

from calque.core.events.decode import partition_before, partition_files, partitions_after, table_after
from calque.core.events.keys import keys_of
from calque.model.journal import Event

RECORDING = Path(__file__).parents[1] / "golden" / "events" / "hive-4.1-json.jsonl"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=1000, help="partitions of the ADD_PARTITION event")
    parser.add_argument("--seconds", type=float, default=1.0, help="time to spend on each measurement")
    options = parser.parse_args(given)

    alteration, addition = event(12), widened(event(10), options.partitions)
    print(f"{'':<34}{'bytes':>9}{'orjson':>11}{'keys_of':>11}{'decode':>11}   µs per event")
    for label, one, decode in (
        ("ALTER_PARTITION", alteration, decode_alteration),
        ("ALTER_PARTITION, gzip", gzipped(alteration), decode_alteration),
        (f"ADD_PARTITION of {options.partitions:,}", addition, decode_addition),
        (f"ADD_PARTITION of {options.partitions:,}, gzip", gzipped(addition), decode_addition),
    ):
        times = [measured(call, one, options.seconds) for call in (bare, keys_of, decode)]
        print(f"{label:<34}{len(one.message):>9,}" + "".join(f"{time:>11,.1f}" for time in times))


def bare(one: Event) -> object:
    if one.message_format == "json-0.2":
        return orjson.loads(one.message)
    return orjson.loads(gzip.decompress(base64.b64decode(one.message)))


def decode_alteration(one: Event) -> object:
    return table_after(one), partition_before(one), partitions_after(one)


def decode_addition(one: Event) -> object:
    return table_after(one), partitions_after(one), partition_files(one)


def measured(call: Callable[[Event], object], one: Event, seconds: float) -> float:
    """Microseconds of processor time, the best of five rounds."""
    timer = timeit.Timer(lambda: call(one), timer=time.process_time)
    number, taken = timer.autorange()
    number = max(1, int(number * seconds / 5 / taken))
    return min(timer.repeat(repeat=5, number=number)) / number * 1e6


def event(event_id: int) -> Event:
    """The recorded event."""
    row = next(row for row in map(json.loads, RECORDING.read_text().splitlines()) if row["event_id"] == event_id)
    return Event(
        row["event_id"],
        row["event_time"],
        row["event_type"],
        row["cat_name"],
        row["db_name"],
        row["table_name"],
        row["message_format"],
        row["message"],
    )


def widened(addition: Event, partitions: int) -> Event:
    """The same ADD_PARTITION with more partitions than its one, p=1."""
    message = json.loads(addition.message)
    (part,) = message["partitionListJson"]
    values = [str(number) for number in range(partitions)]
    message["partitions"] = [{"p": value} for value in values]
    message["partitionListJson"] = [
        part.replace('["str",1,"1"]', f'["str",1,"{value}"]').replace("/p=1", f"/p={value}") for value in values
    ]
    message["partitionFiles"] = [{"partitionName": f"p={value}", "files": []} for value in values]
    return dataclasses.replace(addition, message=json.dumps(message, separators=(",", ":"), ensure_ascii=False))


def gzipped(one: Event) -> Event:
    packed = base64.b64encode(gzip.compress(one.message.encode())).decode()
    return dataclasses.replace(one, message_format="gzip(json-2.0)", message=packed)


def test_decoding_is_measured() -> None:
    main(["--partitions", "10", "--seconds", "0.05"])


if __name__ == "__main__":
    main()
