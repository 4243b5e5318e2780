"""Other programs' protocols over a real server, driven by their real clients where they have one."""
