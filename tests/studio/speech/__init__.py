"""Text in, speech out: speech, messages and refusals on every route that generates speech."""
