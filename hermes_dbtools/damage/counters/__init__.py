"""Counters that disagree with the rows they count."""
