"""The store's sessions, guarded: each command makes a plan, and `apply` runs it; nothing here opens a store for writing."""
