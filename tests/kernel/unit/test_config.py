"""What a configuration may say, and how each mistake is told."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest

from calque.app import APP
from calque.commands.check import look_at_secrets
from calque.config import Config
from calque.config.conflicts import taking_nothing
from calque.config.units import seconds, share, size
from calque.engine.check.findings import Finding, Findings, Severity
from calque.errors import Refused
from calque.model.access import KerberosLogin, MetastoreAccess, PasswordLogin, TokenLogin
from calque.model.names import TableName
from calque.model.policy import Policy, SmallFilesRule
from calque.model.secrets import FileSecret, VariableSecret, revealed
from calque.model.tls import Tls
from calque.plugins.clusters.config.secondary_tables import SecondaryTable, amended
from calque.plugins.clusters.config.sections import cluster_of, clusters_of, require_clusters
from calque.plugins.clusters.model import Clusters

SMALL = """\
[source]
name = "hq"
metastore = "thrift://127.0.0.1:9083"

[targets.dr]
metastore = "thrift://127.0.0.1:9084"
warehouse = "file:///data/dr"
"""

FULL = """\
[source]
name = "hq"
metastore = "thrift://HQ-1:9083, thrift://[::1]:9083/"
poll = "500ms"
pin = "hardlink"
scan = "1h30m"
gap = "stop"
allow_weak_log = true
storage = { "fs.s3a.endpoint" = "http://s3", "fs.s3a.secret.key_env" = "S3_SECRET" }

[state]
path = "s3a://bucket/state/"
checkpoints = "file:/var/checkpoints"

[journal]
format = "kafka"
retention = "2d"
brokers = "127.0.0.1:9092, kafka:9092"

[window]
max_events = 5
max_delay = 0.5

[targets.dr]
metastore = "thrift://dr:9083"
warehouse = "../warehouse"
include = [
    "sales.*",          # all of it
    "/hr_[0-9]+[.].*/",
    "hr.staff",
]
exclude = ["*.tmp_*"]
rename = { "Sales" = "sales_dr", "hr.staff" = "People.Staff" }
start = 812
consistency = "database"
atomicity = "rows"
appends = "new_directory"
data = "none"
drops = "keep"
grace = 60
max_drop = "2.5%"
lease = "10s"
bandwidth = "100MB"
parallel_copies = 8
verify_copies = "read"
external_base = "hdfs://nn/external/"
locations = { "hdfs://nn/a/" = "file:///b/", "/c" = "d" }
strict_locations = true
properties = { "owner.team" = "dr", "secret" = "" }

[targets.copy]
metastore = "thrift://copy:9083"
warehouse = "file:///data/copy"
"""


def read(folder: Path, text: str) -> Config:
    file = folder / "calque.toml"
    file.write_text(text, encoding="utf-8")
    return APP.load(file)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("S3_SECRET", "hush")
    monkeypatch.setenv("PASSWORD", "geheim")


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(Refused) as caught:
        read(folder, text)
    said = str(caught.value)
    assert "\n" not in said
    return said.replace(f"{folder}/", "")


def small(*, source: str = "", target: str = "", more: str = "") -> str:
    """The small file without its empty line: `source` begins at line 4; without it `target` begins at line 7."""
    head, tail = SMALL.split("\n\n")
    return "\n".join(part for part in (head, source, tail.rstrip("\n"), target, more) if part)


def test_a_small_file_gets_every_default(tmp_path: Path) -> None:
    config = read(tmp_path, SMALL)
    source = config.only_source()
    sections = {
        "source": source.keys,
        "state": config.state,
        "journal": source.journal,
        "window": config.window,
        "serve": config.serve,
        "log": config.log,
    }
    assert {name: section.model_dump() for name, section in sections.items()} == {
        "source": {
            "metastore": ("thrift://127.0.0.1:9083",),
            "user": "",
            "auth": "none",
            "password_env": None,
            "password_file": None,
            "token_env": None,
            "token_file": None,
            "principal": "",
            "keytab": "",
            "service_principal": "",
            "tls": {"ca": "", "certificate": "", "key": "", "verify": True},
            "name": "hq",
            "poll": 0.25,
            "early": True,
            "connections": 4,
            "pin": "auto",
            "pins": "",
            "pin_bytes": 10_000_000_000,
            "pin_age": 86400.0,
            "scan": None,
            "scans": {},
            "gap": "when_needed",
            "allow_weak_log": False,
            "max_message": 1 << 28,
            "max_schema": 1 << 24,
            "max_resource": 1 << 30,
            "roots": (),
            "storage": {},
        },
        "state": {
            "path": f"{tmp_path}/state",
            "checkpoints": f"{tmp_path}/checkpoints",
            "tables": "",
            "storage": {},
            "history": 0.0,
        },
        "journal": {
            "format": "delta",
            "retention": 604800.0,
            "brokers": "",
            "topic": "",
            "options": {},
            "registry": "",
            "registry_options": {},
        },
        "window": {"max_events": 100_000, "max_delay": 1.0},
        "serve": {
            "address": None,
            "token_env": None,
            "token_file": None,
            "metrics_token_env": None,
            "metrics_token_file": None,
            "reading": "token",
            "tls": {"ca": "", "certificate": "", "key": ""},
        },
        "log": {"format": "text", "level": "info"},
    }
    assert config.target("dr").policy() == Policy(target="dr", source="hq", warehouse="file:///data/dr")
    assert config.only_source().topic() == "hq.events"


def test_a_full_file_is_read_as_it_is_meant(tmp_path: Path) -> None:
    config = read(tmp_path, FULL)
    assert config.only_source().keys.metastore == ("thrift://hq-1:9083", "thrift://[::1]:9083")
    assert (config.only_source().keys.poll, config.only_source().keys.scan) == (0.5, 5400.0)
    assert config.only_source().keys.storage == {
        "fs.s3a.endpoint": "http://s3",
        "fs.s3a.secret.key": VariableSecret("S3_SECRET"),
    }
    assert (config.state.path, config.state.checkpoints) == ("s3a://bucket/state", "/var/checkpoints")
    assert (config.target("dr").keys.parallel_copies, config.target("copy").keys.parallel_copies) == (8, 0)
    assert (config.target("dr").keys.verify_copies, config.target("copy").keys.verify_copies) == ("read", "auto")
    assert config.only_source().journal.brokers == "127.0.0.1:9092,kafka:9092"
    assert config.target("dr").policy() == Policy(
        target="dr",
        source="hq",
        include=("sales.*", "/hr_[0-9]+[.].*/", "hr.staff"),
        exclude=("*.tmp_*",),
        rename={"sales": "sales_dr", "hr.staff": "people.staff"},
        properties={"owner.team": "dr", "secret": ""},
        warehouse=f"file://{tmp_path.parent}/warehouse",
        external_base="hdfs://nn/external",
        locations={"hdfs://nn/a": "file:///b", "file:///c": f"file://{tmp_path}/d"},
        strict_locations=True,
        start=812,
        consistency="database",
        atomicity="rows",
        appends="new_directory",
        data="none",
        drops="keep",
        grace=60.0,
        max_drop=0.025,
        lease=10.0,
        bandwidth=100_000_000,
    )


def test_secrets_are_not_shown_and_everything_can_be_sent_to_another_process(tmp_path: Path) -> None:
    config = read(tmp_path, FULL)
    assert revealed(config.only_source().keys.storage)["fs.s3a.secret.key"] == "hush"
    assert "hush" not in repr(config)
    assert b"hush" not in pickle.dumps(config)
    assert pickle.loads(pickle.dumps(config)) == config
    assert pickle.loads(pickle.dumps(config.target("dr").policy())) == config.target("dr").policy()


def test_targets_are_selected_by_name_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    config = read(tmp_path, FULL)
    assert config.select(()) == ("dr", "copy")
    assert config.select(("copy", "copy")) == ("copy",)
    with pytest.raises(Refused, match=r'^There is no target "cpoy"\. The nearest is copy\. Name a target'):
        config.target("cpoy")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('pol = "1s"', "calque.toml:4: source.pol is no key. The nearest is poll. Write a key that there is"),
        ("retention = 3", "calque.toml:4: source.retention is no key. It belongs to [journal]. Move it there."),
        ('warehouse = "x"', "calque.toml:4: source.warehouse is no key. It belongs to [targets.NAME]."),
        ('poll = "10x"', 'calque.toml:4: source.poll: "10x" is not a duration. Units are ms, s, m, h, d and w;'),
        ("poll = -1", "calque.toml:4: source.poll: -1 is not a duration."),
        ("poll = true", "calque.toml:4: source.poll: true is not a duration."),
        ("poll = nan", "calque.toml:4: source.poll: nan is not a duration."),
        ('poll = "0s"', "calque.toml:4: source.poll: it is zero. It must be longer than that."),
        ('pin = "hardlnk"', 'calque.toml:4: source.pin: "hardlnk" is no choice. The nearest is hardlink. Write one of'),
        ("gap = 3", "calque.toml:4: source.gap: 3 is no choice. Write one of when_needed, stop."),
        ('scan = "on"', 'calque.toml:4: source.scan: "on" is not a duration.'),
        ('scans = { "a.*" = "on" }', 'calque.toml:4: source.scans: "on" is not a duration.'),
        ('scans = { sales = "1s" }', 'calque.toml:4: source.scans: pattern "sales" names no table.'),
        ('scans = "1s"', "calque.toml:4: source.scans: it must be a table."),
        ('allow_weak_log = "yes"', "calque.toml:4: source.allow_weak_log has the wrong type. It is true or false."),
        ('storage = { k_env = "NOT_SET" }', "calque.toml:4: source.storage: the environment variable NOT_SET is not"),
        ('storage = { k = "a", k_env = "B" }', 'calque.toml:4: source.storage: "k" is given twice.'),
        ('storage = { k_file = "a", k_env = "PASSWORD" }', "calque.toml:4: source.storage: the file "),
        ('storage = { k_env = "" }', 'calque.toml:4: source.storage: "k_env" is empty. It names where the value is.'),
        ("storage = { k = 1 }", 'calque.toml:4: source.storage: "k" must be text.'),
        ('name = "x"', "calque.toml:4: name stands twice. Line 2 has it, too. Take one of them out."),
        ("poll 3", "calque.toml:4: this is no TOML. Expected '=' after a key in a key/value pair. Mend it near column"),
        ('"poll" = "1x"', 'calque.toml:4: source.poll: "1x" is not a duration.'),
    ],
)
def test_a_mistake_at_the_source_is_told_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    assert refusal(tmp_path, small(source=line)).startswith(said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('includ = ["a.*"]', "calque.toml:7: targets.dr.includ is no key. The nearest is include."),
        ('include = "a.*"', 'calque.toml:7: targets.dr.include has the wrong type. It is a list, e.g. ["sales.*"].'),
        ('include = ["sales"]', 'calque.toml:7: targets.dr.include[0]: pattern "sales" names no table.'),
        (
            'include = [\n  "a.*",\n  # "sales"\n  "/a(/",\n]',
            'calque.toml:10: targets.dr.include[1]: "/a(/" is no regular expression. Missing ), unterminated',
        ),
        ("include = [3]", "calque.toml:7: targets.dr.include[0] has the wrong type. It is text in quotes"),
        ('rename = { "a" = "c", "b" = "C" }', 'calque.toml:7: targets.dr.rename: "a" and "b" are both renamed to "C".'),
        ('rename = { "a.t" = "c.t", "A.T" = "c.u" }', 'calque.toml:7: targets.dr.rename: "a.t" is renamed twice.'),
        ('[targets.dr.rename]\n"a" = "x"\n"b" = "c.d"', 'calque.toml:9: targets.dr.rename: "b" = "c.d" renames a data'),
        ('rename = { "a.t" = "b" }', 'calque.toml:7: targets.dr.rename: "a.t" = "b" renames a table to a database.'),
        ('rename = { "a*" = "b" }', 'calque.toml:7: targets.dr.rename: "a*" is no name. A rename goes from a database'),
        ('rename = { "a" = "" }', 'calque.toml:7: targets.dr.rename: "" is no name.'),
        ('rename = { "a" = "_calque_x" }', 'calque.toml:7: targets.dr.rename: "_calque_x" can\'t be renamed'),
        ('start = "57"', 'calque.toml:7: targets.dr.start: "57" is no start. It is an event id (a number without'),
        ("start = -1", "calque.toml:7: targets.dr.start: -1 is no start."),
        ("max_drop = 10", "calque.toml:7: targets.dr.max_drop: 10 is not a percentage. It goes from 0% to 100%."),
        ('max_drop = "101%"', 'calque.toml:7: targets.dr.max_drop: "101%" is not a percentage.'),
        ("bandwidth = 0", "calque.toml:7: targets.dr.bandwidth: it is zero. Nothing could be copied."),
        ('bandwidth = "fast"', 'calque.toml:7: targets.dr.bandwidth: "fast" is not a size.'),
        (
            'lease = "0s"',
            "calque.toml:7: targets.dr.lease: it is shorter than 1 s. It is renewed after each third of it, and",
        ),
        (
            'external_base = "hdfs://nn/../x"',
            'calque.toml:7: targets.dr.external_base: "hdfs://nn/../x" steps upwards.',
        ),
        ('locations = { "a" = "b" }', 'calque.toml:7: targets.dr.locations: "a" is not absolute.'),
        ('locations = { "/a" = "b", "/a/" = "c" }', 'calque.toml:7: targets.dr.locations: "/a/" stands twice.'),
        (
            'properties = { "calque.event" = "1" }',
            'calque.toml:7: targets.dr.properties: "calque.event" can\'t be set.',
        ),
        ('properties = { "a" = 1 }', "calque.toml:7: targets.dr.properties.a has the wrong type. It is text in quotes"),
        (
            'include = ["a.*", "b.*"]\nrename = { "a" = "b" }',
            'calque.toml:8: "a" and "b" would both be "b" at the target. Both are admitted, and a name is',
        ),
    ],
)
def test_a_mistake_at_a_target_is_told_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    assert refusal(tmp_path, small(target=line)).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "",
            "calque.toml: source is missing. It has no default. Add the section [source]. calque.toml: targets is mis",
        ),
        (small(more="[target.x]"), "calque.toml:7: target is no key. The nearest is targets."),
        (
            small(more="[window]\nmax_events = 0"),
            "calque.toml:8: window.max_events is not allowed. Input should be gre",
        ),
        (small(more="window = 3"), "calque.toml:7: targets.dr.window is no key."),
        (small(more='[journal]\nformat = "kafka"'), 'calque.toml:8: journal: brokers is missing. format = "kafka" nee'),
        (small(more='[journal]\nbrokers = "kafka"'), 'calque.toml:8: journal.brokers: "kafka" is not a broker.'),
        (
            small(more='[journal]\noptions = { "acks" = "1" }'),
            "calque.toml:8: journal.options: \"acks\" can't be set. The journal's order and completeness rest on it.",
        ),
        (
            small(more='[journal.options]\n"security.protocol" = "SSL"\n"group.id" = "a"'),
            'calque.toml:9: journal.options: "group.id" can\'t be set. Readers begin at the events that they need',
        ),
        (
            small(more='[journal]\noptions = { "sasl.jaas.config" = "x" }'),
            "calque.toml:8: journal.options: \"sasl.jaas.config\" can't be set. It is a setting of Kafka's Java client",
        ),
        (
            small(more='[journal]\noptions = { "sasl.user" = "a" }'),
            "calque.toml:8: journal.options: librdkafka does not take these settings. No such configuration property",
        ),
        (
            small(more='[journal]\noptions = { "security.protocol" = "TLS" }'),
            'calque.toml:8: journal.options: librdkafka does not take these settings. Invalid value "TLS" for',
        ),
        (
            small(more='[journal]\nregistry = "a:8081"'),
            'calque.toml:8: journal.registry: "a:8081" is not the address of a registry. One begins with http://',
        ),
        (
            small(more='[journal]\nregistry = "http://calque:hush@a:8081"'),
            "calque.toml:8: journal.registry: it has a user's name in it. Addresses are shown in errors. Write regis",
        ),
        (
            small(more='[journal]\nregistry_options = { user = "a", password_env = "PASSWORD" }'),
            "calque.toml:8: journal: registry is missing. registry_options are for it. Write registry",
        ),
        (
            small(more='[journal]\nregistry = "http://a"\nregistry_options = { user = "a" }'),
            "calque.toml:9: journal.registry_options: a user or a password is missing. A registry takes both or none.",
        ),
        (
            small(more='[journal]\nregistry = "http://a"\nregistry_options = { tokn = "a" }'),
            'calque.toml:9: journal.registry_options: "tokn" is no option of a registry. The nearest is token.',
        ),
        (
            small(
                more='[journal]\nregistry = "http://a"\n'
                'registry_options = { user = "a", password_env = "PASSWORD", token_env = "PASSWORD" }'
            ),
            "calque.toml:9: journal.registry_options: a user and a token are given. A registry takes one of them.",
        ),
        (
            small(more='[journal]\nregistry = "http://a"\nregistry_options = { "ssl.key.location" = "k" }'),
            'calque.toml:9: journal.registry_options: "ssl.certificate.location" is missing. The key belongs to a',
        ),
        (small(more='[journal]\ntopic = "a b"'), 'calque.toml:8: journal.topic: "a b" is no topic.'),
        (small(more='[state]\npath = ""'), 'calque.toml:8: state.path: "" is no path.'),
        (small(more="[targets.x]"), "calque.toml:7: targets.x.metastore is missing."),
        (SMALL.replace("targets.dr", 'targets."d r"'), 'calque.toml:5: targets: "d r" is no name for a target.'),
        (SMALL.split("[targets")[0], "calque.toml: targets is missing. It has no default. Add the section [targets.NA"),
        (SMALL.split("[targets")[0] + "[targets]", "calque.toml:5: targets: there is no target. Nothing would be repl"),
        (SMALL.replace('"hq"', '"h:q"'), 'calque.toml:2: source.name: "h:q" is no name.'),
        (
            SMALL.replace('"file:///data/dr"', '"file://host/x"'),
            'calque.toml:7: targets.dr.warehouse: "file://host/x" n',
        ),
        (SMALL + "x = [", "calque.toml: this is no TOML. Invalid value (at end of document)."),
    ],
)
def test_a_mistake_in_a_section_is_told(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text).startswith(said)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('user = "two words"', "calque.toml:4: source.user: 'two words' is no user."),
        ('auth = "ldap"', 'calque.toml:4: source.auth: "ldap" is no choice.'),
        ('auth = "kerberos"\nuser = "u"', "calque.toml:5: source: the ticket says who the user is."),
        ('auth = "kerberos"\nkeytab = "calque.toml"', "calque.toml:5: source: the principal is missing."),
        ('auth = "kerberos"\nprincipal = "a b"', "calque.toml:5: source.principal: 'a b' is no principal."),
        ('keytab = "calque.toml"', "calque.toml:4: source: nobody asks for keytab."),
        ('keytab = "none"', "calque.toml:4: source.keytab: the keytab "),
        ('service_principal = "hive/_HOST"', "calque.toml:4: source: nobody asks for service_principal."),
        ('auth = "plain"\nuser = "u"', "calque.toml:4: source: the password is missing."),
        ('auth = "plain"\npassword_env = "PW"', "calque.toml:4: source: user is missing."),
        ('password_env = "PW"', "calque.toml:4: source: nobody asks for a password."),
        (
            'auth = "plain"\nuser = "u"\npassword_env = "PW"\npassword_file = "pw"',
            "calque.toml:7: source: password is given twice.",
        ),
        ('token_env = "PW"', "calque.toml:4: source: a token is not for thrift."),
        ('tls = { cas = "a.pem" }', "calque.toml:4: source.tls.cas is no key. The nearest is ca."),
        ('tls = { ca = "a.pem" }', "calque.toml:4: source.tls: The certificates in a.pem can't be used."),
        ('tls = { certificate = "a.pem" }', "calque.toml:4: source.tls: key is missing."),
        ('tls = { key = "a.pem" }', "calque.toml:4: source.tls: certificate is missing."),
        ('tls = { ca = "pw", verify = false }', "calque.toml:4: source.tls: verify is false."),
    ],
)
def test_a_login_that_can_not_be_meant_is_told_before_anything_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, said: str
) -> None:
    monkeypatch.setenv("PW", "hush")
    (tmp_path / "pw").write_text("hush")
    text = refusal(tmp_path, small(source=lines))
    assert text.startswith(said)
    assert "hush" not in text


@pytest.mark.parametrize(
    ("address", "line", "said"),
    [
        ("http://hq:9083", "tls = { verify = false }", "source: tls is not for http."),
        ("https://hq:9083", 'auth = "plain"', 'source: auth = "plain" is not for https.'),
        ("https://hq:9083", 'auth = "kerberos"', 'source: auth = "kerberos" is not for https.'),
        ("https://hq:9083", 'user = "u"\ntoken_env = "PW"', "source: the token says who the user is."),
        ("http://hq:9083, thrift://hq:9083", "", "source: the addresses are of several kinds."),
        ("https://u:p@hq:9083", "", "source.metastore: the address has a user's name in it."),
    ],
)
def test_a_login_has_to_fit_the_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, line: str, said: str
) -> None:
    monkeypatch.setenv("PW", "hush")
    text = small(source=line).replace("thrift://127.0.0.1:9083", address)
    assert said in refusal(tmp_path, text)


def test_access_has_the_login_as_a_reference_and_tls_where_a_key_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PW", "hush")
    plain = read(tmp_path, small(source='user = "u"\nauth = "plain"\npassword_env = "PW"\ntls = { verify = false }'))
    assert plain.only_source().keys.access() == MetastoreAccess(
        "u", PasswordLogin(VariableSecret("PW")), Tls(verify=False)
    )
    assert plain.targets["dr"].keys.access() == MetastoreAccess()
    (tmp_path / "token").write_text("hush")
    over_http = small(target='token_file = "token"').replace("thrift://127.0.0.1:9084", "HTTPS://DR:443/hms/")
    target = read(tmp_path, over_http).targets["dr"].keys
    assert target.metastore == ("https://dr:443/hms",)
    assert target.access() == MetastoreAccess("", TokenLogin(FileSecret(f"{tmp_path}/token")))
    by_ticket = read(tmp_path, small(source='auth = "kerberos"\nprincipal = "u@HQ"\nkeytab = "token"'))
    assert by_ticket.only_source().keys.access() == MetastoreAccess("", KerberosLogin("u@HQ", f"{tmp_path}/token"))
    of_process = read(tmp_path, small(source='auth = "kerberos"\nservice_principal = "hms/_HOST@HQ"'))
    assert of_process.only_source().keys.access() == MetastoreAccess("", KerberosLogin("", "", "hms/_HOST@HQ"))


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:9083", 'One begins with thrift://, http:// or https://. Write "thrift://127.0.0.1:9083".'),
        ("hive://hq:9083", 'One begins with thrift://, http:// or https://. Write "thrift://hq:9083".'),
        ("thrift://hq", 'One is a host and a port. Write "thrift://host:9083".'),
        ("thrift://hq:99999", 'Port out of range 0-65535. Write "thrift://host:9083".'),
        ("thrift://hq:9083,", 'One begins with thrift://, http:// or https://. Write "thrift://host:9083".'),
        ("thrift://hq:9083/x", 'One is a host and a port. Write "thrift://host:9083".'),
    ],
)
def test_an_address_that_is_none_is_told_with_one_that_would_do(tmp_path: Path, address: str, said: str) -> None:
    assert refusal(tmp_path, SMALL.replace("thrift://127.0.0.1:9083", address)).endswith(said)


def test_settings_of_kafka_s_client_pass_with_secrets_from_the_environment_and_the_topic_has_a_default(
    tmp_path: Path,
) -> None:
    options = '"security.protocol" = "SASL_SSL"\n"sasl.mechanism" = "PLAIN"\n"sasl.username" = "hub"\n'
    secret = '"sasl.password_env" = "PASSWORD"'
    kafka = '[journal]\nformat = "kafka"\nbrokers = "a:9092,b:9092"'
    text = small(more=f"{kafka}\n[journal.options]\n{options}{secret}")
    config = read(tmp_path, text)
    assert revealed(config.only_source().journal.options) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "hub",
        "sasl.password": "geheim",
    }
    assert "geheim" not in repr(config)
    assert config.only_source().topic() == "hq.events"


def test_a_registry_is_named_by_the_roots_of_its_api_with_its_password_from_the_environment(tmp_path: Path) -> None:
    registry = 'registry = "https://a:8080/apis/ccompat/v7/, https://b"'
    login = 'registry_options = { user = "hub", password_env = "PASSWORD" }'
    config = read(tmp_path, small(more=f"[journal]\n{registry}\n{login}"))
    assert config.only_source().journal.registry == "https://a:8080/apis/ccompat/v7,https://b"
    assert revealed(config.only_source().journal.registry_options) == {"user": "hub", "password": "geheim"}
    assert "geheim" not in repr(config)


def test_several_mistakes_are_told_in_one_line_up_to_five(tmp_path: Path) -> None:
    lines = "\n".join(f'wrong_{number} = "x"' for number in range(7))
    said = refusal(tmp_path, small(source=lines))
    assert [f"calque.toml:{line}: " in said for line in range(4, 11)] == [True] * 5 + [False] * 2
    assert said.endswith("And 2 more.")


LITERAL = "geheim-7f3a"


@pytest.mark.parametrize(
    "key",
    [
        "secret",
        "token",
        "password",
        "account_key",
        "sas_token",
        "connection_string",
        "client_secret",
        '"fs.s3a.secret.key"',
        '"fs.s3a.session.token"',
        '"sasl.password"',
        '"ssl.key.pem"',
    ],
)
def test_a_secret_that_stands_in_the_file_is_refused_and_not_repeated(tmp_path: Path, key: str) -> None:
    said, name = refusal(tmp_path, small(source=f'storage = {{ {key} = "{LITERAL}" }}')), key.strip('"')
    assert said == (
        f'calque.toml:4: source.storage: the value of "{name}" is a secret. This file is for everybody\'s eyes. '
        f'Write "{name}_env" with the name of an environment variable, or "{name}_file" with the path of a file.'
    )


@pytest.mark.parametrize(
    "option",
    [
        "key",
        "anon",
        "profile",
        "fs.s3a.access.key",
        "sasl.username",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.ca.pem",
    ],
)
def test_what_is_no_secret_may_stand_in_the_file(tmp_path: Path, option: str) -> None:
    config = read(tmp_path, small(source=f'storage = {{ "{option}" = "x" }}'))
    assert config.only_source().keys.storage == {option: "x"}


@pytest.mark.parametrize(
    "text",
    [
        small(source=f'storage = {{ endpoint_url = "http://calque:{LITERAL}@s3:9000" }}'),
        small(target=f'external_base = "sftp://calque:{LITERAL}@host/data"'),
        small(target=f'locations = {{ "s3a://KEY:{LITERAL}@bucket/a" = "/b" }}'),
        small(more=f'[state]\ntables = "s3://KEY:{LITERAL}@bucket/state"'),
        small(more=f'[journal]\nbrokers = "calque:{LITERAL}@a:9092"'),
        small(more=f'[journal]\nregistry = "http://calque:{LITERAL}@a:8081"'),
        small(more=f'[journal]\nregistry = "http://a"\nregistry_options = {{ user = "a", password = "{LITERAL}" }}'),
        small(more=f'[journal.options]\n"sasl.password" = "{LITERAL}"'),
        SMALL.replace("thrift://127.0.0.1:9083", f"thrift://calque:{LITERAL}@127.0.0.1:9083"),
        SMALL.replace("thrift://127.0.0.1:9083", f"http://calque:{LITERAL}@127.0.0.1:9083"),
        SMALL.replace("file:///data/dr", f"s3://calque:{LITERAL}@bucket/../dr"),
        small(source=f'password = "{LITERAL}"'),
    ],
)
def test_no_refusal_repeats_a_password_of_the_file(tmp_path: Path, text: str) -> None:
    assert LITERAL not in refusal(tmp_path, text)


def test_a_secret_in_a_file_is_named_relative_to_the_configuration_and_read_when_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("one\n")
    config = read(tmp_path, small(source='storage = { secret_file = "key" }'))
    storage = config.only_source().keys.storage
    assert revealed(storage) == {"secret": "one"}
    (tmp_path / "key").write_text("two\n")
    assert revealed(storage) == {"secret": "two"}
    assert "two" not in repr(config)


def test_check_warns_of_each_file_of_a_secret_that_every_user_can_read(tmp_path: Path) -> None:
    for name, mode in (("open", 0o644), ("closed", 0o640)):
        (tmp_path / name).write_text("x")
        (tmp_path / name).chmod(mode)
    storage = 'storage = { secret_file = "open", token_file = "closed" }'
    config = read(tmp_path, small(source=storage, target='storage = { secret_file = "open" }'))
    findings = Findings()
    look_at_secrets(config, findings)
    what, todo = f"Every user of this host can read {tmp_path}/open", f"Say `chmod o-r {tmp_path}/open`"
    assert findings.entries == [
        Finding(what, "The value of a secret is in it", todo, Severity.WARNING, "configuration")
    ]


SECOND = """
[targets.copy]
metastore = "thrift://{address}"
warehouse = "file:///data/{warehouse}"
{line}
"""


@pytest.mark.parametrize(
    ("address", "warehouse", "line", "said"),
    [
        ("LOCALHOST:9084", "copy", "", "dr and copy would both write every table into thrift://localhost:9084."),
        ("LOCALHOST:9084", "copy", 'exclude = ["*.tmp_*"]', 'dr and copy would both write names like "*.*" into'),
        ("LOCALHOST:9084", "copy", 'include = ["sales.*"]', 'dr and copy would both write names like "sales.*" into'),
        ("x:1,thrift://127.0.0.1:9084", "copy", 'include = ["a.t"]', 'dr and copy would both write names like "a.t"'),
        ("x:9084", "dr", "", "dr and copy would both write every table into file:///data/dr."),
    ],
)
def test_two_targets_that_write_the_same_names_are_refused(
    tmp_path: Path, address: str, warehouse: str, line: str, said: str
) -> None:
    text = SMALL + SECOND.format(address=address, warehouse=warehouse, line=line)
    assert refusal(tmp_path, text).startswith(f"calque.toml:10: {said}")


@pytest.mark.parametrize(
    ("address", "warehouse", "line"),
    [
        ("x:9084", "copy", ""),
        ("x:9084", "dr", 'data = "none"'),
        ("127.0.0.1:9084", "copy", 'include = ["a.*"]\nexclude = ["*.*"]'),
    ],
)
def test_two_targets_that_stay_apart_are_fine(tmp_path: Path, address: str, warehouse: str, line: str) -> None:
    config = read(tmp_path, SMALL + SECOND.format(address=address, warehouse=warehouse, line=line))
    assert list(config.targets) == ["dr", "copy"]


def test_properties_that_reach_the_files_are_refused_where_these_are_the_source_s(tmp_path: Path) -> None:
    purging = SMALL + 'properties = { "External.Table.Purge" = "true" }\n'
    assert read(tmp_path, purging).target("dr").policy().properties == {"External.Table.Purge": "true"}
    said = "\"External.Table.Purge\" would have the target's metastore act on the source's files."
    assert refusal(tmp_path, purging + 'data = "none"\n').startswith(f"calque.toml:8: {said}")
    by_table = purging + 'data = { "*.*" = "copy", "tmp.*" = "none" }\n'
    assert refusal(tmp_path, by_table).startswith(f"calque.toml:8: {said}")
    taken_away = SMALL + 'properties = { "external.table.purge" = "" }\ndata = "none"\n'
    assert read(tmp_path, taken_away).target("dr").policy().properties == {"external.table.purge": ""}


def test_small_files_are_combined_by_patterns_where_no_append_touches_what_is_shown(tmp_path: Path) -> None:
    compact = SMALL + 'compact = { "logs.*" = { files = 50, below = "64MB" }, "*.web" = {} }\n'
    policy = read(tmp_path, compact + 'appends = "new_directory"\n').target("dr").policy()
    assert policy.compact == {"logs.*": SmallFilesRule(50, 64_000_000), "*.web": SmallFilesRule(100, 128_000_000)}
    assert read(tmp_path, SMALL).target("dr").policy().compact == {}
    assert refusal(tmp_path, compact).startswith('calque.toml:8: compact needs appends = "new_directory".')
    none = refusal(tmp_path, compact + 'appends = "new_directory"\ndata = "none"\n')
    assert none.startswith('calque.toml:8: compact is of no use with data = "none".')
    for wrong, said in (
        ('{ "logs" = {} }', 'pattern "logs" names no table'),
        ('{ "logs.*" = { files = 1 } }', "files"),
        ('{ "logs.*" = { below = "1KB" } }', '"1KB" is no size of files to make'),
        ('{ "logs.*" = { bellow = "1MB" } }', "bellow"),
    ):
        assert said in refusal(tmp_path, f'{SMALL}compact = {wrong}\nappends = "new_directory"\n')


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('format = "delte"', '"delte" is neither plain nor delta. The nearest is delta. Write "plain" or "delta".'),
        ("format = 5", 'it must be a string or a table. Write "plain", "delta", or by table'),
        ('format = { "tmp.*" = "iceberg" }', '"iceberg" is neither plain nor delta.'),
        ('data = "none"\nformat = "delta"', 'format = "delta" is of no use with data = "none".'),
        (
            'format = "delta"\nappends = "new_directory"\ncompact = { "logs.*" = {} }',
            'format = "delta" and compact exclude each other.',
        ),
    ],
)
def test_format_is_plain_or_delta_for_all_or_by_table(tmp_path: Path, line: str, said: str) -> None:
    assert said in refusal(tmp_path, f"{SMALL}\n{line}\n")
    by_table = read(tmp_path, f'{SMALL}\nformat = {{ "*.*" = "delta", "tmp.*" = "plain" }}\n').target("dr").admission()
    assert by_table.wanted_format(TableName("sales", "orders"))
    assert not by_table.wanted_format(TableName("tmp", "orders"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('data = "non"', '"non" is neither copy nor none. The nearest is none. Write "copy" or "none".'),
        ("data = 5", 'it must be a string or a table. Write "copy", "none", or by table'),
        ('data = { "tmp" = "none" }', 'pattern "tmp" names no table.'),
        ('data = { "tmp.*" = "cpy" }', '"cpy" is neither copy nor none. The nearest is copy.'),
    ],
)
def test_data_is_copy_or_none_for_all_or_by_table(tmp_path: Path, line: str, said: str) -> None:
    assert said in refusal(tmp_path, SMALL + line + "\n")
    by_table = read(tmp_path, SMALL + 'data = { "*.*" = "none", "Sales.*" = "copy", "sales.tmp_*" = "none" }\n')
    copies = by_table.target("dr").admission().copies
    names = [TableName("hr", "a"), TableName("sales", "a"), TableName("sales", "tmp_a")]
    assert [copies(name) for name in names] == [False, True, False]


def test_one_metastore_as_source_and_target_needs_other_names(tmp_path: Path) -> None:
    ring = SMALL.replace("thrift://127.0.0.1:9084", "thrift://localhost:9083")
    assert refusal(tmp_path, ring).startswith("calque.toml:6: every table would be replicated onto itself.")
    kept = ring + 'include = ["sales.*"]\n'
    assert refusal(tmp_path, kept).startswith('calque.toml:6: "sales" would be replicated onto itself.')
    renamed = read(tmp_path, kept + 'rename = { "sales" = "sales_copy" }')
    assert renamed.target("dr").policy().rename == {"sales": "sales_copy"}


def test_a_file_that_can_not_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"^There is no file .*none\.toml\. .* Write one with 'calque init"):
        APP.load(tmp_path / "none.toml")
    with pytest.raises(Refused, match=r"can't be read\. Is a directory\."):
        APP.load(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'[source]\nname = "\xe9"')
    with pytest.raises(Refused, match=r"is not UTF-8\. Byte 17 is not\."):
        APP.load(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("text", "value"),
    [("500ms", 0.5), ("10s", 10), ("1h30m", 5400), ("7d", 604800), ("1w", 604800), (3, 3), (0.5, 0.5), ("90", 90)],
)
def test_durations(text: object, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize(
    "text", ["", "s", "1 s", "1mm", "1s?2s", "-1s", "1e3", True, None, float("inf"), "9" * 30 + "d"]
)
def test_what_is_no_duration(text: object) -> None:
    with pytest.raises(Refused, match="duration"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "value"), [("64MB", 64_000_000), ("64 MiB", 67_108_864), ("1.5kb", 1500), (12, 12), ("1TB", 10**12)]
)
def test_sizes(text: object, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize("text", ["64XB", "-1", "", True])
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(Refused, match="is not a size"):
        size(text)


def test_percentages() -> None:
    assert [share(text) for text in ("0%", "2.5 %", "100%")] == [0.0, 0.025, 1.0]


def test_of_the_patterns_that_match_a_table_the_longest_says_how_often_it_is_scanned(tmp_path: Path) -> None:
    source = 'scan = "1m"\nscans = { "sales.*" = "5s", "*.raw" = "2s", "sales.old" = "off" }'
    interval = read(tmp_path, small(source=source)).only_source().keys.intervals()
    names = {"hr.staff": 60.0, "sales.big": 5.0, "sales.raw": 5.0, "hr.raw": 2.0, "sales.old": None}
    assert {name: interval(TableName(*name.split("."))) for name in names} == names


def test_a_configuration_scans_when_any_table_may_be_scanned(tmp_path: Path) -> None:
    for source, scans in (("", False), ('scan = "1s"', True), ('scans = { "a.*" = "off" }', False)):
        assert read(tmp_path, small(source=source)).only_source().keys.scans_some() is scans
    assert read(tmp_path, small(source='scans = { "a.*" = 3 }')).only_source().keys.scans_some()


# Clusters

CLUSTERS = """\
[clusters]
default = "C1"
max_lag = "30s"
deployments = ["calque.toml"]

[clusters.C1]
metastore = "thrift://127.0.0.1:9083"
engine = "sc://c1:15002/;use_ssl=true"

[clusters.C2]
metastore = "thrift://127.0.0.1:9084"
"""


def test_clusters_alone_are_a_whole_configuration_over_their_deployments(tmp_path: Path) -> None:
    read(tmp_path, SMALL)
    file = tmp_path / "clusters.toml"
    file.write_text(CLUSTERS)
    config = APP.load(file)
    assert require_clusters(config) == Clusters(("C1", "C2"), "C1", max_lag=30.0)
    assert [cluster.engine for cluster in clusters_of(config).values()] == ["sc://c1:15002/;use_ssl=true", ""]
    assert [list(deployment.targets) for deployment in config.others] == [["dr"]]
    with pytest.raises(Refused, match=r'There is no cluster "c1"\. The nearest is C1\.'):
        cluster_of(config, "c1")
    with pytest.raises(Refused, match=r"clusters\.toml has no \[source\]"):
        config.only_source()


QUOTED = '"hive.default.cluster.name" = "C1"\n"hive.use.default.cluster" = true\n"hive.disable.clusters" = true'


@pytest.mark.parametrize("names", [QUOTED, QUOTED.replace('"hive', "hive").replace('" =', " =")])
def test_three_keys_of_clusters_have_hives_names_too(tmp_path: Path, names: str) -> None:
    file = tmp_path / "clusters.toml"
    read(tmp_path, SMALL)
    file.write_text(CLUSTERS.replace('default = "C1"', names))
    assert require_clusters(APP.load(file)) == Clusters(("C1", "C2"), "C1", True, False, max_lag=30.0)
    for own, hive in (("default", "default.cluster.name"), ("use_default", "use.default.cluster")):
        value = '"C1"' if own == "default" else "false"
        file.write_text(CLUSTERS.replace('default = "C1"', f"{names}\n{own} = {value}"))
        with pytest.raises(Refused, match=rf"it says what {own} says\. hive\.{hive} is Hive's name for it"):
            APP.load(file)


def test_a_target_may_say_that_it_takes_nothing_and_is_refused_by_who_would_replicate_to_it(tmp_path: Path) -> None:
    read(tmp_path, SMALL)
    config = read(tmp_path, small(target="include = []"))
    assert config.target("dr").keys.include == ()
    (refusal,) = taking_nothing(config)
    assert (refusal.what, refusal.exit_code) == ("Target dr takes nothing", 65)
    assert read(tmp_path, SMALL).target("dr").keys.include == ("*.*",)
    assert taking_nothing(read(tmp_path, SMALL)) == []


def test_clusters_beside_a_source_are_over_its_own_targets(tmp_path: Path) -> None:
    config = read(tmp_path, SMALL + CLUSTERS)
    assert (list(clusters_of(config)), config.others, config.only_source().name) == (["C1", "C2"], (), "hq")
    with pytest.raises(Refused, match=r"The configuration has no \[clusters\]"):
        require_clusters(read(tmp_path, SMALL))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('default = "C1"\n', "", "calque.toml:1: clusters.default is missing."),
        ('default = "C1"', 'default = "C3"', 'calque.toml:2: clusters: there is no cluster "C3". Known: C1, C2.'),
        ("max_lag", "max_lga", "calque.toml:3: clusters: it is no key. The nearest is max_lag."),
        ('"30s"', '"0s"', "calque.toml:3: clusters.max_lag: it is zero."),
        ("engine =", "engin =", "calque.toml:8: clusters.C1.engin is no key. The nearest is engine."),
        ("sc://c1:15002", "spark://c1", 'calque.toml:8: clusters.C1.engine: "spark" is no kind of engine. Known: sc.'),
        ("sc://c1:15002", "c1:15002", 'calque.toml:8: clusters.C1.engine: "c1:15002/;use_ssl=true" is no address'),
        ("use_ssl=true", "token=x", "calque.toml:8: clusters.C1.engine: it has a secret in it."),
        ("[clusters.C2]", '[clusters."a b"]', 'calque.toml:10: clusters: "a b" is no name for a cluster.'),
        ("9084", "9083", "calque.toml:11: C1 and C2 have one metastore."),
        ('"calque.toml"', '"none.toml"', "calque.toml:4: clusters.deployments: There is no file "),
        ('"calque.toml"', '"pyproject.toml"', "calque.toml:4: clusters.deployments: "),
    ],
)
def test_a_mistake_among_clusters_is_told_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(CLUSTERS)
    assert refusal(tmp_path, CLUSTERS.replace(old, new, 1)).startswith(said)


def test_the_newest_word_on_a_table_counts_in_place_of_the_file(tmp_path: Path) -> None:
    lines = (
        'include = ["sales.*"]\nexclude = ["*.tmp"]\npartitions = { "sales.a" = "ds > \'1\'", "*.*" = "ds > \'2\'" }'
    )
    config = read(tmp_path, small(target=lines))
    keys = config.targets["dr"].keys

    def after(*tables: SecondaryTable) -> tuple[tuple[str, ...], tuple[str, ...], Mapping[str, str]]:
        now = amended(config, {"dr": tables}).targets["dr"].keys
        return now.include, now.exclude, now.partitions

    assert after() == (keys.include, keys.exclude, keys.partitions)
    assert after(SecondaryTable("hr.b", True, "x = 1")) == (
        ("sales.*", "hr.b"),
        ("*.tmp",),
        {**keys.partitions, "hr.b": "x = 1"},
    )
    assert after(SecondaryTable("sales.a", False)) == (
        ("sales.*",),
        ("*.tmp", "sales.a"),
        {"*.*": "ds > '2'"},
    )
    dropped = amended(config, {"dr": [SecondaryTable("sales.a", False)]})
    again = amended(dropped, {"dr": [SecondaryTable("sales.a", False), SecondaryTable("sales.a", True)]})
    assert again.targets["dr"].keys.exclude == ("*.tmp",)
    assert amended(dropped, {}) == config
