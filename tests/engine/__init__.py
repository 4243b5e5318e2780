"""Tests of the engine, most of them against an independent implementation (tests/upstream.py)."""
