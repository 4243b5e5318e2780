"""Tests of long work: queues, jobs and processes."""
