"""Links that begin, change and end while calque runs."""
