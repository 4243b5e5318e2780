"""Text libraries: what is said, and how it is cut."""
