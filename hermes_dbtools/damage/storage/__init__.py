"""Damage of the file as a whole: what lies on disk, its structure, its sidecars."""
