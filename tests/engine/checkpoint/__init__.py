"""Checkpoints in every layout: read, compared with independent implementations, refused where they are wrong."""
