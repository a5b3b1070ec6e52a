"""What `calque check` asks of a journal's topics and of its schema registry."""
