"""The page in a real Chromium, as a user sees it."""
