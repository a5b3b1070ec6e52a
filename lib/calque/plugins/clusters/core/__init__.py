"""On which cluster a statement runs: its tables by a SQL parser, and the cluster by the rules of `resolve`."""
