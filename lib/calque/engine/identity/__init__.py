"""Who is who: which metastores and directories a ledger is of, and whether these answer."""
