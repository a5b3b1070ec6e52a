"""What a run of the tests tries, and in which order."""
