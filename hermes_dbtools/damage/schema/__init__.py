"""Damage of the schema: tables, columns, keys, indexes and triggers that are not what the store relies on."""
