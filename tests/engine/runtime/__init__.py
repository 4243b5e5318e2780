"""Tests of the running engine: threads, rows, caches, memory."""
