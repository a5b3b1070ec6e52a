"""Images of source objects, in the form that they have at a target, and the differences between two sides
(`compare`)."""
