"""A script as people write and paste it: its signs, its markup, its brackets, and where its sentences end."""
