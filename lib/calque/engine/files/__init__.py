"""Files of states, made ready at a target where no reader looks yet: copies, claims on directories, proofs of
content."""
