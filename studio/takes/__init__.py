"""Takes: what became of each request, the recent ones and those that are kept, and their sound as files."""
