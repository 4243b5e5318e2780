"""Sound in and out: clips, resampling, formats."""
