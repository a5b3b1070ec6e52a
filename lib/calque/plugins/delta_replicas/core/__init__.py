"""What fits into a Delta table, what its metastore and its log say of it, and what its files say of their columns."""
