"""Render reports; computes nothing, opens nothing, and holds no decision."""

from __future__ import annotations
