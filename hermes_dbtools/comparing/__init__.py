"""What changed between two states of one store, as before and after an upgrade; opens both for reading only."""
