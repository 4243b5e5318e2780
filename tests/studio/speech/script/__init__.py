"""A script before the model: cleaning, tags, and agreement of all routes."""
