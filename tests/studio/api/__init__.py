"""Guarantees of every route: access, origins, bodies, responses, starting and stopping."""
