"""The Studio tab: script, cast, clip, speaking, and the takes that come of it."""
