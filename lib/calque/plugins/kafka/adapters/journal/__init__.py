"""The journal and the evidence as topics of one partition each, whose log order decides what counts."""
