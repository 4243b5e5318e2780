"""How the studio listens: its port, its HTTP server, and what its log leaves out."""
