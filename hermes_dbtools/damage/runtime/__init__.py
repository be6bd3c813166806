"""Damage of the runtime ledger: admissions, workers, leases, and what deletes leave of them."""
