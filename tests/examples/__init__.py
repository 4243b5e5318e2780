"""The examples as their readers run them."""
