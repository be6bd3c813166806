"""Ratios of speed and memory, measured in one run."""
