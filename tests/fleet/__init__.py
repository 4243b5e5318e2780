"""Tests of the fleet: routing and takes without Ray, and the complete fleet with Ray."""
