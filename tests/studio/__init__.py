"""The studio over real connections, with its library on a real disk."""
