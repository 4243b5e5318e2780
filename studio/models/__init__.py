"""Models to choose from: the catalogue, downloads from the Hugging Face Hub, and the switch to another model."""
