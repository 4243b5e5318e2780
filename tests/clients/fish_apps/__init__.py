"""Third-party programs that use Fish Audio's protocol, each run in its own environment: see run.py."""
