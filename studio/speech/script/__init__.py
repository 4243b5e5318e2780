"""Cleans scripts as people write and paste them: characters, markup and brackets; finds the ends of sentences."""
