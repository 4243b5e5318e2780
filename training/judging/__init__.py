"""What `training.evaluate` judges a checkpoint by."""
