"""The Studio tab: script, cast, clip, speaking, and the resulting takes."""
