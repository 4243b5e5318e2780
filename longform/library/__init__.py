"""Projects in the library: their records and tables, for their owners and for the worker that generates them."""
