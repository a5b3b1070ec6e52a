"""The store of marks, and the calls by which a metastore is told of single partitions."""
