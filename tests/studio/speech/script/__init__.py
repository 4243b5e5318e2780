"""A script before the model: what is cleaned, what is a tag, and that every way agrees."""
