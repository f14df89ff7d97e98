"""Translators made from keras-hub's encoder-decoders: `tfformer.from_keras_hub`."""
