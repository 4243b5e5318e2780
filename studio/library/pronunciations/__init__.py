"""Tables of how words and phrases are said: for everybody, for a voice, for a project."""
