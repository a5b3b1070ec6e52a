"""The rules of links: their parameters, who may make them, their layers, and the comparison of two looks at a
catalog."""
