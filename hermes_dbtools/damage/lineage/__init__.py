"""Damage of how sessions descend from each other."""
