"""HDFS as storage: through its native client, and through WebHDFS where that lacks a call."""
