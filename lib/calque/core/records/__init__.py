"""Values that ledgers and state folders keep: lives of tables, contents by epoch, claims, leases, gaps."""
