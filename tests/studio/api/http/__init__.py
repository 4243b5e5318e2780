"""What every route stands on: keys, frames, and what the log shows of requests."""
