"""The server of `tfformer serve`.

It supports clients of TensorFlow Serving, LibreTranslate and DeepL, and serves a page for trying
the models.
"""
