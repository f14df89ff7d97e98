"""A model and a search put to use: translation, generation, evaluation."""
