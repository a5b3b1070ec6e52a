"""Observation of a target, and the decision whose fault it is when a call there fails."""
