"""The sections [clusters], and the statements that add to them."""
