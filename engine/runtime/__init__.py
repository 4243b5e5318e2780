"""The engine at work: rows, their order, the threads, and everything that is set up and held meanwhile."""
