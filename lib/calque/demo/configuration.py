"""The configuration that the demo writes: one source, and targets that differ in what they take and how."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

CHANNEL = "changes"
"""The channel of notices of a demo that stays."""
NOTICES = (
    "create_table",
    "drop_table",
    "alter_table",
    "add_partition",
    "drop_partition",
    "alter_partition",
    "insert",
    "done",
)
TOKEN_FILE, LOADS_FILE = "page-token", "load.toml"
LOADED = "shop_copy"
"""The database into which the dumps of a demo that stays are loaded."""
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


def write(path: Path, source: str, targets: Mapping[str, str], brokers: str = "", more: str = "") -> None:
    """Write the configuration to `path`. `source` and the values of `targets` are addresses of metastores; places
    within it are relative to the file. With `brokers` the journal is on Kafka. `more` are further sections."""
    path.write_text(text(source, targets, brokers) + more, encoding="utf-8")


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


def of_a_stay(links_at: str, brokers: str) -> str:
    """Return the sections of a demo that stays: the page with a token (the file `TOKEN_FILE`), dumps, links at the
    metastore `links_at`, and notices on `brokers`."""
    return f"""
[serve]
token_file = {json.dumps(TOKEN_FILE)}

[repl]
root = "dumps"

[remotes]
metastore = {json.dumps(links_at)}
warehouse = "links"

[notices.{CHANNEL}]
at = "source"
url = {json.dumps(f"kafka://{brokers}")}
topic = "demo.notices"
types = {json.dumps(NOTICES)}
"""


def of_loads(source: str, target: str) -> str:
    """Return the configuration for loads of dumps at the metastore `target`. It is another one, because a load needs a
    target that no `calque run` writes to."""
    return f"""\
# Written by `calque demo --stay`, for REPL LOAD: at another target than those that `calque run` writes to.

[source]
name = "demo"
metastore = {json.dumps(source)}
roots = ["."]

[state]
path = "loads"

[repl]
root = "dumps"

[targets.loaded]
metastore = {json.dumps(target)}
warehouse = "targets/loaded"
include = ["{LOADED}.*"]
"""
