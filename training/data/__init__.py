"""The corpus in the form used by training: audio on the device, phones, codes."""
