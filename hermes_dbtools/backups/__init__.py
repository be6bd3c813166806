"""Whole copies of a store: made, listed, and put back into its place."""
