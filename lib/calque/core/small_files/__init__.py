"""Many small files as few: which are combined (`grouping`), and how their rows are taken over."""
