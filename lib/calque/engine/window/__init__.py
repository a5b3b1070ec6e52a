"""One window of events at one target: cut into groups, planned, and applied hop by hop."""
