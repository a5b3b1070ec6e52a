"""A target's tables exactly as of an epoch, for those who read them."""
