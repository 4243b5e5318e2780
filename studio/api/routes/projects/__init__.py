"""Projects over HTTP: made and spoken, their sound as files, their covers."""
