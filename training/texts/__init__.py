"""The texts that the bundled model is trained on, and their readings: prose, templates, figures, short phrases."""
