"""Tests of studio/models."""
