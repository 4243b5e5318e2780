"""Takes while they are made: requests under way, recent ones, limits of callers, and the recorder of what is kept."""
