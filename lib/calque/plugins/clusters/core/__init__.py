"""The choice of a statement's cluster: a SQL parser tells its tables, the rules of `resolve` the cluster."""
