"""The page in a real Chromium, as a person meets it."""
