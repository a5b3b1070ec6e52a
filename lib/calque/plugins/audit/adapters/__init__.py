"""What audit statements read: relations over ledgers, and the history that outlives them."""
