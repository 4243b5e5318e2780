"""ElevenLabs' protocol over real connections, with the real SDK."""
