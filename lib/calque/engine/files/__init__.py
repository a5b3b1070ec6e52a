"""Makes files ready at a target where no reader looks yet."""
