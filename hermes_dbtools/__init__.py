"""Diagnose and repair the state.db of a Hermes agent."""

__version__ = "0.1.0"
