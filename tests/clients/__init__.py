"""The official OpenAI clients, and what they are answered."""
