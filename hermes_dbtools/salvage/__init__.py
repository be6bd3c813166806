"""Get the rows out of a damaged file into a new one; the source is read once, as bytes, and is never written."""
