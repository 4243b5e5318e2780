"""Several processes that answer HTTP for one studio: all accept connections, and they share takes and limits."""
