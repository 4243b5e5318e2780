"""Tests of studio/start."""
