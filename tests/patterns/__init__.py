"""A check of every regular expression of the product."""
