"""The frozen values that all other rooms speak of. They need the standard library only.

`hive` has the metastore's own objects and their Thrift field tables, `facets` their column statistics and constraints;
`names` how tables and partitions are called; `journal` a row of the log with its key columns; `files` directories and
what lies in them; `policy` what a target takes; `plan` operations, hops and plans; `ledger` what a target remembers;
`secrets` where secret values stand.
"""
