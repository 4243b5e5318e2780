"""Tests of the fleet: its choosing and its takes without Ray, and one run of the whole with it."""
