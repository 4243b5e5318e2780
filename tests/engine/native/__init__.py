"""Tests of the native code for CPUs, against torch and against itself."""
