"""Damage to references: rows that name a row which is gone."""
