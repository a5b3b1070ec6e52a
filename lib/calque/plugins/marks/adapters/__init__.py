"""Where marks are kept, and what a metastore is told of single partitions."""
