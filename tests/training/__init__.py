"""Tests of training/: what it shares with the engine must agree with it."""
