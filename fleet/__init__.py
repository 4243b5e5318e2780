"""A fleet: several engines, each on a GPU of its own, behind one; Ray Serve places, watches and replaces them."""
