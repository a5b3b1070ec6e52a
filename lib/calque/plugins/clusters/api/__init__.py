"""The questions that programs ask about clusters, and their answers.

`matching` says which cluster each source and target of the deployments is at, `presence` which cluster has how much of
a table, and `lag` how far a replica lags. `open_clusters` puts them together, and `secondaries` changes which tables
are replicated to a cluster.
"""
