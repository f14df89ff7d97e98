"""Using a trained model: translation, generation, evaluation."""
