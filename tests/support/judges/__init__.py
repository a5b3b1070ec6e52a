"""What is right at the end, and on the way there."""
