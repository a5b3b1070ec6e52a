"""AWS Glue as moto has it, in a process of its own; and hands that write to it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from botocore.session import Session

from calque.sandbox.processes import KeptProcess

RUNNING = re.compile(r"Running on (http://127\.0\.0\.1:\d+)")
TEXT = {
    "InputFormat": "org.apache.hadoop.mapred.TextInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    "SerdeInfo": {
        "SerializationLibrary": "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
        "Parameters": {"x": "1"},
    },
}
REGION = "eu-west-1"
VARIABLES = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
"""Any will do."""


class MotoServer:
    """Listens at `url` when it is made."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        self.process = KeptProcess(command, folder / "moto.log", grace_seconds=2)
        try:
            self.process.wait_until(lambda output: RUNNING.search(output) is not None, 60)
        except BaseException:
            self.process.kill()
            raise
        match = RUNNING.search(self.process.output())
        assert match is not None
        self.url = match[1]
        self.glue: Any = Session().create_client(
            "glue", REGION, endpoint_url=self.url, aws_access_key_id="test", aws_secret_access_key="test"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.glue.close()
        self.process.kill()

    def database(self, name: str) -> None:
        self.glue.create_database(DatabaseInput={"Name": name, "Description": "far"})

    def put(
        self, database: str, name: str, location: str, *, keyed: bool = False, columns: tuple[str, ...] = ("x",)
    ) -> None:
        """The table, made or altered."""
        table = {
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "StorageDescriptor": storage(location, columns),
            "PartitionKeys": [{"Name": "p", "Type": "string"}] if keyed else [],
            "Parameters": {"colour": "red"},
        }
        try:
            self.glue.create_table(DatabaseName=database, TableInput=table)
        except self.glue.exceptions.AlreadyExistsException:
            self.glue.update_table(DatabaseName=database, TableInput=table)

    def add(self, database: str, name: str, location: str, *values: str) -> None:
        for value in values:
            given = {"Values": [value], "StorageDescriptor": storage(f"{location}/p={value}", ("x",)), "Parameters": {}}
            self.glue.create_partition(DatabaseName=database, TableName=name, PartitionInput=given)


def storage(location: str, columns: tuple[str, ...]) -> dict[str, Any]:
    return {"Columns": [{"Name": name, "Type": "int"} for name in columns], "Location": location, **TEXT}
