"""The comparison of a target with its source. It changes nothing."""
