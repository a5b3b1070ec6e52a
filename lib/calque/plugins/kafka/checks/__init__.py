"""The questions of `calque check` to a journal's topics and to its schema registry."""
