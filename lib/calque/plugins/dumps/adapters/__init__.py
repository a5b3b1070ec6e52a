"""A dump of Hive's replication as a source: its log, its catalog and its files behind the ports of a source.

`directory` opens a dump; `log` has the events of an increment, `event_files` the files of these events, `catalog` the
objects that were dumped whole, `storage` their directories; `find_files` finds files that a dump only names.
"""
