"""The studio on a wire, with its library on a real disk."""
