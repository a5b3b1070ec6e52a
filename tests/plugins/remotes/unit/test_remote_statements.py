"""Statements over links that are refused before anything is connected to, and the examples of the source document."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.messages import GET_ALL_DATABASES
from calque.app import APP
from calque.cli import main
from calque.errors import AccessRefused
from calque.model.access import MetastoreAccess
from calque.plugins.remotes.statements.kinds import CreateRemoteDatabase, CreateRemoteTable, SetTableProperties
from calque.statements.statement import QualifiedTable

THRIFT = "org.apache.hadoop.hive.metastore.ThriftHiveMetastoreClientFactory"
FAR = {"hive.metastore.uris": "thrift://remote-hms:9083"}
WITH = "WITH TBLPROPERTIES ('hive.metastore.uris' = 'thrift://remote-hms:9083')"
DOCUMENT = {
    f"""CREATE REMOTE TABLE local_db.local_tbl
    CONNECTED TO remote_db.remote_tbl
    VIA '{THRIFT}'
    WITH TBLPROPERTIES (
      'hive.metastore.uris' = 'thrift://remote-hms:9083'
    );""": CreateRemoteTable(
        False, QualifiedTable("local_db", "local_tbl"), QualifiedTable("remote_db", "remote_tbl"), THRIFT, FAR
    ),
    f"""CREATE REMOTE DATABASE local_db_name
    CONNECTED TO remote_db_name
    VIA '{THRIFT}'
    WITH DBPROPERTIES (
      'hive.metastore.uris' = 'thrift://remote-hms:9083'
    );""": CreateRemoteDatabase(False, "local_db_name", "remote_db_name", THRIFT, FAR),
    """CREATE REMOTE DATABASE db_name
    WITH DBPROPERTIES (
      'hive.metastore.uris' = 'thrift://remote-hms:9083'
    );""": CreateRemoteDatabase(False, "db_name", None, None, FAR),
    """CREATE REMOTE TABLE tbl_name
    WITH TBLPROPERTIES (
      'hive.metastore.uris' = 'thrift://remote-hms:9083'
    );""": CreateRemoteTable(False, QualifiedTable(None, "tbl_name"), None, None, FAR),
    """CREATE REMOTE TABLE tbl_name
    VIA 'com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory'
    WITH TBLPROPERTIES (
      -- Glue endpoint configuration
    );""": CreateRemoteTable(
        False,
        QualifiedTable(None, "tbl_name"),
        None,
        "com.amazonaws.glue.catalog.metastore.AWSGlueDataCatalogHiveClientFactory",
        {},
    ),
    """CREATE REMOTE TABLE tbl_name
    VIA 'org.apache.hadoop.hive.metastore.SSHThriftHiveMetastoreClientFactory'
    WITH TBLPROPERTIES (
      'hive.metastore.uris' = 'thrift://metastore.domain:9083'
      'ssh.tunnel.route' = 'bastionuser@bastion-host.domain -> user@cluster-node.domain'
      'ssh.tunnel.private.keys' = '/home/user/.ssh/bastionuser-key-pair.pem,/home/user/.ssh/user-key-pair.pem'
      'ssh.tunnel.known.hosts' = '/home/user/.ssh/known_hosts'
    );""": CreateRemoteTable(
        False,
        QualifiedTable(None, "tbl_name"),
        None,
        "org.apache.hadoop.hive.metastore.SSHThriftHiveMetastoreClientFactory",
        {
            "hive.metastore.uris": "thrift://metastore.domain:9083",
            "ssh.tunnel.route": "bastionuser@bastion-host.domain -> user@cluster-node.domain",
            "ssh.tunnel.private.keys": "/home/user/.ssh/bastionuser-key-pair.pem,/home/user/.ssh/user-key-pair.pem",
            "ssh.tunnel.known.hosts": "/home/user/.ssh/known_hosts",
        },
    ),
}


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calque.toml").write_text('[remotes]\nmetastore = "thrift://here.invalid:9083"\n')
    return tmp_path


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Who connects to it can be seen."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.mark.parametrize("text", DOCUMENT, ids=range(len(DOCUMENT)))
def test_statements_of_the_document_are_read_as_they_stand(text: str) -> None:
    (parsed,) = APP.language().parse(text)
    assert parsed.statement == DOCUMENT[text]


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CREATE REMOTE TABLE a.t", "'hive.metastore.uris' is missing."),
        (f"CREATE REMOTE TABLE a.t VIA 'thrft' {WITH}", "There is no client 'thrft'. The nearest is"),
        (
            "CREATE REMOTE TABLE a.t WITH TBLPROPERTIES ('hive.metastore.uri' = 'thrift://x:1')",
            "'hive.metastore.uri' is no setting of 'thrift'.",
        ),
        (
            "CREATE REMOTE TABLE a.t WITH TBLPROPERTIES ('hive.metastore.uris' = 'x', 'ssh.password' = 'y')",
            "'ssh.password' would be a secret in the catalog.",
        ),
    ],
)
def test_wrong_links_are_refused_with_what_to_do(text: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", text]) == 65
    assert capsys.readouterr().err.startswith(f"calque: {said}")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE REMOTE TABLE",
        "CREATE REMOTE TABLE a.t CONNECTED b.t",
        "CREATE REMOTE TABLE a.t VIA 'thrift' VIA 'thrift'",
        f"CREATE REMOTE TABLE a.t {WITH} CONNECTED TO b.t",
        "CREATE REMOTE DATABASE a WITH TBLPROPERTIES ('k' = 'v')",
        "DROP REMOTE TABEL a.t",
        "ALTER REMOTE TABLE a.t SET DATA MOVE",
    ],
)
@pytest.mark.usefixtures("configured")
def test_misspelt_clauses_are_syntax_errors(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", text]) == 64
    assert "^" in capsys.readouterr().err


def test_an_alteration_names_what_is_new() -> None:
    (parsed,) = APP.language().parse(
        "ALTER REMOTE TABLE a.t SET TBLPROPERTIES ('hive.metastore.uris' = 'thrift://remote-hms:9083')"
    )
    assert parsed.statement == SetTableProperties(QualifiedTable("a", "t"), FAR)


def test_without_remotes_there_are_no_remote_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calque.toml").write_text(
        '[source]\nname = "hq"\nmetastore = "thrift://h:1"\n[targets.dr]\nmetastore = "thrift://h:2"\nwarehouse = "w"\n'
    )
    assert main(["sql", "SHOW REMOTE TABLES"]) == 65
    assert capsys.readouterr().err.startswith("calque: There are no remote tables here.")


@pytest.mark.parametrize("scheme", ["thrift", "http"])
def test_a_name_that_leads_near_is_not_connected_to_where_that_is_forbidden(
    scheme: str, listener: socket.socket
) -> None:
    # What resolvers take for 127.0.0.1, as a name that DNS has somewhere might be.
    client = Client(f"{scheme}://127.1:{listener.getsockname()[1]}", MetastoreAccess(user="ann", far_only=True))
    with pytest.raises(AccessRefused, match="It is near calque itself"):
        client.call(GET_ALL_DATABASES)
    with pytest.raises(BlockingIOError):
        listener.accept()
