"""The other tabs, a file each."""
