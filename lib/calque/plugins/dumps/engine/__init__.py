"""REPL DUMP: the states of a database, or its events, written into a directory as Hive's replication would."""
