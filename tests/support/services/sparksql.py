"""Spark SQL with Delta at one metastore, in a process of its own: a session's metastore is its JVM's for ever.

Run as a program it answers statements: a line of JSON with a number and the statement, a line of JSON with the number
and its rows, or with what is wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

Rows = list[list[Any]]


class SparkSql:
    """A session at the metastore `uri`; scratch files and the log go below `root`. One statement at a time."""

    def __init__(self, uri: str, root: Path) -> None:
        command = [sys.executable, __file__, uri, str(root)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._lock = threading.Lock()
        self._number = 0

    def sql(self, statement: str) -> Rows:
        """Its rows; raises `RuntimeError` with Spark's words."""
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._number += 1
            self._process.stdin.write(json.dumps([self._number, statement]) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = {}
            while answer.get("number") != self._number:
                line = self._process.stdout.readline()
                answer = json.loads(line) if line else {"number": self._number, "problem": "Spark ended"}
        if "problem" in answer:
            raise RuntimeError(f"{statement}: {answer['problem']}")
        rows: Rows = answer["rows"]
        return rows

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def serve(uri: str, root: Path) -> None:
    from calque.adapters.spark.session import session
    from calque.sandbox import spark_jars

    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.sql.warehouse.dir": f"file:{root}/warehouse",
        "spark.sql.shuffle.partitions": "1",
        # Statements over a few rows: whatever is compiled or planned anew for each of them takes longer than its rows.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.driver.memory": "1g",
    }
    spark = session("sql", spark_jars(), root, settings)
    for line in sys.stdin:
        number, statement = json.loads(line)
        answer: dict[str, Any] = {"number": number}
        try:
            answer["rows"] = [list(row) for row in spark.sql(statement).collect()]
        except Exception as error:  # noqa: BLE001 - the caller is another process
            answer["problem"] = str(error)[:2000]
        print(json.dumps(answer, default=str), flush=True)
    spark.stop()


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
