"""Tests of engine/checking."""
