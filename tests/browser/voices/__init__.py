"""The Voices tab and the steps to a new voice."""
