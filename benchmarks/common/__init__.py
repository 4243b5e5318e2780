"""What all benchmarks use: reports, material to speak and clone, a browser."""
