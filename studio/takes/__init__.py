"""Active and recent takes: requests, limits per caller, metrics, and the recorder that stores takes."""
