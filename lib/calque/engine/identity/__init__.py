"""The identity of a ledger: which metastores and directories it belongs to, and whether these are the ones that
answer."""
