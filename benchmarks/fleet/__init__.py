"""Figures of a fleet: the total output of many engines."""
