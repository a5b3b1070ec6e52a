"""What an object of the source is at a target, and what differs between two (`compare`)."""
