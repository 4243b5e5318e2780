"""Takes as they are kept, listed, filtered and deleted."""
