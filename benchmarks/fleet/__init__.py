"""Figures of a fleet: what many engines give together."""
