"""The command `calque init`, which writes a commented configuration."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calque.commands.options import CommandSettings, examples, pattern, shared
from calque.commands.output import print_json, print_line
from calque.errors import Refused, nearest, sentence
from calque.resources import schemas_folder

if TYPE_CHECKING:
    from calque.config.sections import SectionKind

KERNEL = """\
# Configuration of calque. A line that begins with "#" and a key shows a default: take the "#" away to change it. With
# a blank behind the "#" it is a remark or an example. Durations: "500ms", "10s", "7d"; without a unit it is seconds.
# Paths are URIs, or plain paths relative to this file. No secret stands here: a key that ends in _env names an
# environment variable, one that ends in _file a file with the value; in tables, too: secret_env = "S3_SECRET".

[source]
name = "hq"                                 # the metastore's own name, the same in all files that name it
metastore = "thrift://127.0.0.1:9083"       # its address; a comma-separated list fails over
#poll = "250ms"                             # how often capture asks the log for news
#early = true                               # take events before Spark's next batch; false changes no result
#connections = 4                            # calls to the source at a time; so many tables are read at once
#user = ""                                  # who calls the metastore; "" for the operating system's user
#auth = "none"                              # none | plain | kerberos: by a name, a password, or a ticket
# password_env = "METASTORE_PASSWORD"       # the variable with the password of auth = "plain"
# password_file = "/etc/calque/password"    # or the file
# token_env = "METASTORE_TOKEN"             # the variable with a bearer token, for http:// and https://
# token_file = "/etc/calque/token"          # or the file
# principal = "calque@EXAMPLE.COM"          # whose ticket, for auth = "kerberos"; that of the process when left out
# keytab = "/etc/calque/calque.keytab"      # the file with its keys; when left out, tickets that the process has
# service_principal = "hive/_HOST"          # the metastore's own; _HOST is the host of its address
#tls = {}                                   # any key asks for TLS: { ca = "ca.pem", certificate, key, verify = true }
#pin = "auto"                               # auto | none | hardlink | copy: keep files until every target has them
#pins = ""                                  # where, best on the source's file system; "" for the state folder
#pin_bytes = "10GB"                         # pinned at most; beyond it states that a target lacks are skipped
#pin_age = "1d"                             # how long at most; likewise
#scan = "off"                               # off, or how often to look for files that changed without an event
#scans = {}                                 # by table, the longest pattern wins: { "a.*" = "5s", "a.raw" = "off" }
#gap = "when_needed"                        # when_needed | stop: read again what a gap may have changed, or end
#allow_weak_log = false                     # run although the log can't give every guarantee
#roots = []                                 # where tables, jars, schemas may lie; [] for all but what is the host's own
#max_message = "256MiB"                     # of the log, unpacked, and of a metadata file; a longer one is not decoded
#max_schema = "16MiB"                       # of an Avro schema that a table points to; a larger one sets it aside
#max_resource = "1GiB"                      # of a jar or file that a function points to; likewise
#storage = {}                               # for its files, e.g. { endpoint_url = "http://s3:9000", region = "eu" }

[state]
path = "state"                              # folder of journal, evidence, ledgers and control records
#tables = ""                                # where else journal, evidence and ledgers lie, e.g. "s3://bucket/calque"
#storage = {}                               # for tables, e.g. { key_env = "S3_KEY", secret_env = "S3_SECRET" }
#history = "0s"                             # what was shown when, beyond grace and retention, e.g. "90d"
#checkpoints = "checkpoints"                # Spark's; nothing in it is truth

[journal]
#format = "delta"                           # delta | kafka: say `calque journal move` after a change
#retention = "7d"                           # of events; a target that is away for longer starts again by itself
# brokers = "127.0.0.1:9092"                # of Kafka; a comma-separated list
# topic = "hq.events"                       # the source's name and ".events" when left out
# Settings of librdkafka, Kafka's client, for all that connects; [journal.options] may be a section, too.
# options = { "security.protocol" = "SSL", "ssl.ca.location" = "/etc/ca.pem", "ssl.key.password_env" = "KAFKA_KEY" }
# A schema registry of Confluent's kind: events then carry its id of their schema; a comma-separated list fails over.
# registry = "http://127.0.0.1:8081"
# The login at it (a user and a password, or a token), and for TLS e.g. "ssl.ca.location".
# registry_options = { user = "calque", password_env = "REGISTRY_PASSWORD" }

[window]
# max_events = 100000                       # what a target takes at a time; left out, more behind a backlog
#max_delay = "1s"                           # an upper bound under load, which is never reached: windows begin at once

[serve]                                     # /healthz, /readyz, /metrics and /status of a running process
# address = "127.0.0.1:9400"                # "" for none; when left out this one, or if it is taken a free port
# token_env = "CALQUE_TOKEN"                # the variable with the token of these pages; needed beyond this host
# token_file = "/etc/calque/pages-token"    # or the file
# metrics_token_env = "CALQUE_METRICS"      # the variable with a token that opens /metrics alone
# metrics_token_file = "/etc/calque/metrics-token"  # or the file
#reading = "token"                          # token | open: on this host without the token, which actions still need
#tls = {}                                   # { certificate = "c.pem", key = "k.pem" }; ca: each client has to show one

[log]                                       # of a running process, to standard error
#format = "text"                            # text | json: one object a line
#level = "info"                             # debug | info | warning | error
"""
"""The text that `calque init` writes of the kernel's sections but targets, with comments: a line for each key."""
TARGET = """\
# One section for each target.
[targets.dr]
metastore = "thrift://127.0.0.1:9084"       # its address; a comma-separated list fails over
#user = ""                                  # who calls it; "" for the operating system's user
#auth = "none"                              # none | plain | kerberos: by a name, a password, or a ticket
# password_env = "METASTORE_PASSWORD"       # the variable with the password of auth = "plain"
# password_file = "/etc/calque/password"    # or the file
# token_env = "METASTORE_TOKEN"             # the variable with a bearer token, for http:// and https://
# token_file = "/etc/calque/token"          # or the file
# principal = "calque@EXAMPLE.COM"          # whose ticket, for auth = "kerberos"; that of the process when left out
# keytab = "/etc/calque/calque.keytab"      # the file with its keys; when left out, tickets that the process has
# service_principal = "hive/_HOST"          # the metastore's own; _HOST is the host of its address
#tls = {}                                   # any key asks for TLS: { ca = "ca.pem", certificate, key, verify = true }
warehouse = "file:///data/dr"               # where its files lie: outside its metastore's own warehouse directories
include = ["*.*"]                           # database.table globs, or /regular expressions/: ["sales.*", "hr.staff"]
#exclude = []                               # exclude wins; what is not included is not replicated; e.g. ["*.tmp_*"]
#rename = {}                                # databases or tables: { "sales" = "sales_dr", "hr.staff" = "people.staff" }
#start = "bootstrap"                        # bootstrap, or an event id at which the target is known to equal the source
#consistency = "table"                      # table | database: all its tables show one state of the source's database
#atomicity = "listing"                      # listing | rows: partitions switch at once, and are listed early
#appends = "in_place"                       # in_place | new_directory: no append touches a directory that is shown
#data = "copy"                              # copy | none: metadata only; by table: { "*.*" = "copy", "tmp.*" = "none" }
#format = "plain"                           # plain | delta: Parquet tables as Delta tables; by table: as data
#acid = "skip"                              # skip | auto | external | native | delta: of ACID tables; or by table
#transactions = "together"                  # together | apart: native ACID tables that one transaction wrote
#partitions = {}                            # by table, over partition keys: { "sales.orders" = "ds >= '2024'" }
#where = ""                                 # some tables: over type, owner, location, param('k'); e.g. "owner = 'etl'"
#drops = "follow"                           # follow | keep: objects that the source drops stay at the target
#grace = "1h"                               # replaced and dropped files stay that long, then `calque sweep` takes them
#max_drop = "10%"                           # and at least 10 objects, or all of a database: drops without an event wait
#lease = "30s"                              # at least "1s": a writer that died or hangs is replaced after that
#bandwidth = ""                             # of copies to this target, per second, e.g. "100MB"; "" for no limit
#parallel_copies = 0                        # files copied to this target at a time, at most; 0 for no limit
#verify_copies = "auto"                     # auto | read: each is read back | storage: what the storage says counts
#external_base = ""                         # external tables lie below it, at the source's full path
#locations = {}                             # { prefix at the source = prefix at the target }, the longest wins
#strict_locations = false                   # refuse external tables that no prefix fits
#properties = {}                            # set on tables, an empty value removes; e.g. { "owner.team" = "dr" }
#permissions = "target"                     # target | keep: owners, groups, modes and ACLs as at the source
#grants = "ignore"                          # ignore | follow: the metastore's own privileges as at the source
#compact = {}                               # small files are combined: { "logs.*" = { files = 100, below = "128MB" } }
#storage = {}                               # for what lies below warehouse, external_base and in locations
"""


NEXT_TARGET = """\
# All keys of the section above may stand here, too.
[targets.dr]
metastore = "thrift://127.0.0.1:9084"
warehouse = "file:///data/dr"
include = ["*.*"]
"""
"""The section of a further target."""
FIRST_TARGET = "dr"
"""The name of the target where the command line names none."""
MEANINGS_AT = 44
"""The column at which the meaning of a key begins."""


@dataclass(frozen=True, slots=True)
class Places:
    """The places that a new configuration names: the address of the source, and the addresses and warehouses of targets
    by their names. The template's own stand for those that are missing. `include` is what each target takes."""

    source: str = ""
    targets: Mapping[str, str] = field(default_factory=dict)
    warehouses: Mapping[str, str] = field(default_factory=dict)
    include: Sequence[str] = ()

    def names(self) -> Sequence[str]:
        return tuple(self.targets) or (FIRST_TARGET,)

    def missing(self) -> Sequence[str]:
        """Return the sections that still have to be filled in."""
        whole = [name for name in self.names() if name in self.targets and name in self.warehouses]
        sections = [f"[targets.{name}]" for name in self.names() if name not in whole]
        return sections if self.source else ["[source]", *sections]


def template(kinds: Iterable[SectionKind[Any]], places: Places = Places()) -> str:
    """Return the text of a whole configuration: the kernel's sections and those of plugins that stand in every file,
    then targets, then examples of other sections."""
    own = [(kind.template, kind.stands_first) for kind in kinds]
    first, behind = ([text for text, stands_first in own if stands_first is wanted] for wanted in (True, False))
    kernel = with_value(KERNEL, "metastore", places.source) if places.source else KERNEL
    return "\n".join([kernel, *first, *target_sections(places), *behind])


def target_sections(places: Places) -> Iterator[str]:
    for name in places.names():
        text = (TARGET if name == places.names()[0] else NEXT_TARGET).replace("[targets.dr]", f"[targets.{name}]", 1)
        if name in places.targets:
            text = with_value(text, "metastore", places.targets[name])
        text = with_value(text, "warehouse", places.warehouses.get(name, f"file:///data/{name}"))
        yield with_value(text, "include", list(places.include)) if places.include else text


def with_value(text: str, key: str, value: str | list[str]) -> str:
    """Return the text with another value of the key, on its one line that is no comment."""
    line = next(line for line in text.splitlines() if line.startswith(f"{key} = "))
    setting = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    _, separator, meaning = line.partition("  # ")
    new_line = f"{setting.ljust(MEANINGS_AT - 2)}  # {meaning.lstrip()}" if separator else setting
    return text.replace(f"{line}\n", f"{new_line}\n", 1)


def named_place(text: str) -> tuple[str, str]:
    """Return the name and the place of `NAME=URI`. Raises a usage error for another text."""
    from calque.config.file import TARGET

    name, separator, place = text.partition("=")
    if not separator or not place:
        raise click.BadParameter(f'"{text}" is no name and place. Write NAME=URI')
    if not TARGET.fullmatch(name):
        raise click.BadParameter(f'"{name}" is no name for a target. Letters, digits, "_" and "-" make one')
    return name, place


def by_name(_context: click.Context, parameter: click.Parameter, pairs: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Return the places by their names. Raises a usage error for a name that comes twice."""
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise click.BadParameter(f'"{name}" is given {count} times', param=parameter)
    return dict(pairs)


@click.command(
    "init",
    epilog=examples(
        "calque init",
        "calque init conf/dr.toml",
        "calque init --source thrift://hq:9083 --target dr=thrift://dr:9083 --warehouse dr=file:///data/dr",
    ),
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--source", metavar="URI", default="", help="The source's metastore.")
@click.option(
    "--target",
    "targets",
    metavar="NAME=URI",
    type=named_place,
    multiple=True,
    callback=by_name,
    help="A target and its metastore; may be repeated.",
)
@click.option(
    "--warehouse",
    "warehouses",
    metavar="NAME=URI",
    type=named_place,
    multiple=True,
    callback=by_name,
    help="Where a target's files lie; may be repeated.",
)
@click.option("--include", metavar="PATTERN", type=pattern, multiple=True, help="What targets take; may be repeated.")
@shared
@click.pass_obj
def command(
    settings: CommandSettings,
    file: Path | None,
    source: str,
    targets: Mapping[str, str],
    warehouses: Mapping[str, str],
    include: Sequence[str],
) -> int:
    """Write a commented configuration.

    To FILE, or where -c says (default: calque.toml). What must be said stands in it; everything else is a comment with
    its default. A file that exists is never overwritten.
    """
    places = Places(source, targets, warehouses, include)
    for name in warehouses:
        if name not in places.names():
            raise click.UsageError(f'--warehouse: "{name}" is no target. {nearest(name, places.names())}')
    return run(settings, file or Path(settings.config), places)


def schema_line() -> str:
    """Return the comment by which an editor finds the schema of the file: that of the calque that writes it."""
    schema = schemas_folder() / "calque-toml.json"
    return f"#:schema {schema.as_uri()}\n\n"


def run(settings: CommandSettings, file: Path, places: Places) -> int:
    """Write the file. Raises a usage error for places that no configuration can have, and `Refused` where the file is
    there, or can't be written."""
    text = template(settings.app.file_kinds().sections, places)
    try:
        settings.app.parse(file, text)
    except Refused as refused:
        raise click.UsageError(message_of(refused, file)) from None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as output:
            output.write(schema_line() + text)
    except FileExistsError as error:
        problem = f"{error.filename} exists" if error.filename != str(file) else f"{file} exists already"
        raise Refused(problem, "calque init overwrites nothing", "Name another file, or remove that one") from None
    except OSError as error:
        raise Refused(f"{file} can't be written", str(error.strerror or error), "Name another place") from None
    if settings.json:
        print_json({"written": str(file)})
    elif missing := places.missing():
        print_line(f"Wrote {file}. Fill in {' and '.join(missing)}, then run 'calque check -c {file}'.")
    else:
        print_line(f"Wrote {file}. Run 'calque check -c {file}'.")
    return 0


def message_of(refused: Refused, file: Path) -> str:
    """Return the text of the refusal without the line of a file that is not written."""
    what = re.sub(rf"{re.escape(str(file))}:(\d+:)? ", "", refused.what)
    return " ".join(sentence(part) for part in (what, refused.why, refused.todo) if part).removesuffix(".")
