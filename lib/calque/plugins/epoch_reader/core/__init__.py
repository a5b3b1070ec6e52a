"""The rules by which rows of a ledger become rows of changes for readers; no I/O."""
