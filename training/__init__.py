"""Training of the small S2-architecture model that ships in assets/fry: data, codec, language model, checks."""
