"""Real processes, and what stands between them."""
