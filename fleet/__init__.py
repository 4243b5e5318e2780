"""A fleet: several engines, each on its own GPU, behind one interface; Ray Serve places, monitors and replaces them."""
