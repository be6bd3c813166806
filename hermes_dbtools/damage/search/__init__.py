"""Damage of the search indexes, which are made of messages and can be made again."""
