"""The wire format: request bodies and answers."""
