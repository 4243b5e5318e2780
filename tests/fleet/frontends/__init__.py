"""Tests of several processes that speak HTTP for one studio."""
