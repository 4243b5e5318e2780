"""Tests of the attribution of speech in prose."""
