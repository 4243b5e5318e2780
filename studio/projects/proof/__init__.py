"""Proof of projects: the recogniser hears each part, and what it heard is compared with what was to be said."""
