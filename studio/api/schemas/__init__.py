"""The wire format: request and response bodies."""
