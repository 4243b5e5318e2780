"""Shared by all routes: access control, bodies, forms, errors, byte ranges, events, the OpenAPI document."""
