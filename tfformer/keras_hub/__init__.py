"""Translators made of keras-hub's encoder-decoders: `tfformer.from_keras_hub`."""
