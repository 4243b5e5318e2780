"""Measurements: each prints a table for people, and as its last line JSON for programs."""
