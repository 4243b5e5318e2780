"""The benchmarks' own programs: their arithmetic, and each once in small."""
