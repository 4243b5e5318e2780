"""What the bundled model is taught to say, and how its teacher reads it: prose, templates, figures, short phrases."""
