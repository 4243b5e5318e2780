"""The other tabs, one file each."""
