"""Proof: sentences, and faults planted into their audio."""
