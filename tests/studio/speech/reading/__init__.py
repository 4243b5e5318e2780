"""Written forms, and how they are read."""
