"""Native code for CPUs: sources in C, built libraries, and their use through ctypes."""
