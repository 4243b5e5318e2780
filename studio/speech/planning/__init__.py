"""What is decided before the engine is asked: what is said, by whom and how; and where that is decided."""
