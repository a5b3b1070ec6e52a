"""ACID tables as the log and their directories show them: transactions, write ids, and which directories a state reads.

Hive numbers the writes to a transactional table by write ids. A transaction has one write id of each table that it
writes, and its rows lie in directories that are named by it (`delta_0000004_0000004_0000`). A reader takes the write
ids that are valid for it, and these choose the directories (`directories`) and the rows in them (`rows`). The log has
all that decides which write ids are valid (`transactions`, `write_ids`).
"""
