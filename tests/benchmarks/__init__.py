"""Tests of the benchmark programs: their arithmetic, and one small run of each."""
