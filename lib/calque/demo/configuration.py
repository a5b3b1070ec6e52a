"""The configuration that the demo writes: one source, and targets that differ in what they take and how."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

VARIANTS: Mapping[str, str] = {
    "mirror": """\
include = ["*.*"]
""",
    "dr": """\
include = ["sales.*", "hr.staff", "lab_*.*"]
rename = { "sales" = "sales_dr", "hr.staff" = "people.staff" }
properties = { "owner.team" = "dr" }
""",
    "analytics": """\
include = ["*.*"]
exclude = ["hr.*", "*.tmp_*"]
rename = { "web" = "web_raw" }
appends = "new_directory"
""",
    "audit": """\
include = ["/(sales|hr)[.].*/"]
atomicity = "rows"
properties = { "note" = "" }
""",
}


def names(targets: int) -> list[str]:
    """Return the names of the demo's targets, in order: those of `VARIANTS`, then the same with numbers."""
    kinds = list(VARIANTS)
    rounds = [f"{kind}{number}" if number else kind for number in range(targets) for kind in kinds]
    return rounds[:targets]


def write(path: Path, source: str, targets: Mapping[str, str], brokers: str = "") -> None:
    """Write the configuration to `path`. `source` and the values of `targets` are addresses of metastores; places
    within it are relative to the file. With `brokers` the journal is on Kafka."""
    path.write_text(text(source, targets, brokers), encoding="utf-8")


def text(source: str, targets: Mapping[str, str], brokers: str = "") -> str:
    kinds = list(VARIANTS.values())
    sections = [
        f"""
[targets.{name}]
metastore = {json.dumps(uri)}
warehouse = "targets/{name}"
{kinds[index % len(kinds)]}"""
        for index, (name, uri) in enumerate(targets.items())
    ]
    journal = f'\n[journal]\nformat = "kafka"\nbrokers = {json.dumps(brokers)}\n' if brokers else ""
    return f"""\
# Written by `calque demo`; the services run only as long as it does.

[source]
name = "demo"
metastore = {json.dumps(source)}
roots = ["."]
{journal}{"".join(sections)}"""
