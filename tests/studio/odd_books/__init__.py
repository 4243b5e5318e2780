"""Small books as odd as people's own, one builder for each kind, with what an import must make of them."""
