"""What readers of changes get of a ledger's rows; no I/O."""
