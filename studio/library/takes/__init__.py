"""Takes: their record, their tables, and the links that share them."""
