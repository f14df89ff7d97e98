"""The paper, on Keras: masks, layers, models and losses. Knows no text and no files."""
