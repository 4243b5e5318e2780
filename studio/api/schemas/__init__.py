"""The wire format: the bodies that routes take, field by field, and how answers look."""
