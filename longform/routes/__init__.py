"""Projects over HTTP: creation and generation, arrangement of parts, exports, covers."""
