"""Programs of others that speak through Fish Audio's protocol, each run in an environment of its own: see run.py."""
