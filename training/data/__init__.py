"""The corpus as training reads it: sound on the device, phones, codes."""
