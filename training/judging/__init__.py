"""The judges and measurements of `training.evaluate`."""
