"""Tests of the port, the server and the log."""
