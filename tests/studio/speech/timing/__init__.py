"""Tests of word times."""
