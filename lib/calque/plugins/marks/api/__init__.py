"""What programs and statements do with done sets."""
