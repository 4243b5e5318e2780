"""Tests of training/, which must agree with the engine in everything that they share."""
