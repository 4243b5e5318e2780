"""Word times: the words as typed, aligned with the words as read."""
