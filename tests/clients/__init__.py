"""Official and third-party clients, and the responses that they get."""
