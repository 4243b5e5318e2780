"""The routes of voices: of the library, as OpenAI has them, and of the recogniser that hears their clips."""
