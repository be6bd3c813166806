"""Values that no healthy store writes into a column."""
