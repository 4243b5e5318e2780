"""Audio in and out: reading clips safely, resampling streams, encoding speech while it is generated."""
