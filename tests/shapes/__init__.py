"""Stores of every known shape, made from sql/fixture and filled with healthy rows."""
