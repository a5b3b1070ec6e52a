"""Dumps and loads as Hive's REPL writes and reads them, and exports and imports of single tables."""
