"""Tests of when words are heard."""
