"""Small unusual books like those of users, one builder for each kind, with the expected result of an import."""
