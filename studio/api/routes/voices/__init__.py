"""The routes of voices: the library's, OpenAI's, and those of the speech recogniser."""
