"""Tests of the engine at work: threads, rows, caches, memory."""
