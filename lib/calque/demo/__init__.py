"""`calque demo`: the whole system on one machine, from metastores to a verified replica."""
