"""`calque demo`: the whole system on one machine, from metastores to a verified replica.

`source` changes a metastore and its files and knows what each table should hold; `warehouse` fills one; `writer` picks
changes at random: they work with any `HiveClient` and folder, in tests too. `run` puts the demo together from them,
real metastores and `calque run`; `progress` shows it.
"""
