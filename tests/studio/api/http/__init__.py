"""The basis of every route: keys, frames, and logging of requests."""
