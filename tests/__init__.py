"""The project's tests, in the shape of the tree: engine, studio, clients, browser."""
