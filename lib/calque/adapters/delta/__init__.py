"""The journal, the evidence and the ledgers as Delta tables, written by delta-rs: no JVM needed to read or write them.

`snapshot` says which data files a version has, `table` reads and commits; `journal`, `evidence` and `ledger` are ports.
"""
