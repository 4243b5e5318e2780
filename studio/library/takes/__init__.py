"""Takes: their record, their tables, and the links by which others may hear them."""
