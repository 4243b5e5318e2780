"""Training of the small S2-architecture model in assets/fry: data, codec, language model, evaluation."""
