"""Fish Audio's protocol over real connections, with messages as observed from its clients."""
