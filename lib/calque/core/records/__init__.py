"""What ledgers and state folders keep, as values: tables' lives, contents by epoch, claims, leases, gaps."""
