"""Tests of who speaks in prose."""
