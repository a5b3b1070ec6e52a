"""What a target shows, and whose fault it is when a call there fails."""
