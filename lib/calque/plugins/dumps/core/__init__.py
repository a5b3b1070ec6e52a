"""The files of Hive's replication dumps and exports, as values and back.

`layout` where each file lies; `metadata` what `_metadata` says of a table, database or function; `constraints` the
files beside it; `dump_metadata` what a dump and each of its events is; `file_lists` where the data lies; `markers` how
far dumping and loading got; `event_types` how events are called in a dump; `scope` which names a policy takes.
"""
