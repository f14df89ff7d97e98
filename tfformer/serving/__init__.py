"""The server of `tfformer serve`.

It answers the clients of TensorFlow Serving, LibreTranslate and DeepL, and serves a page to type
into.
"""
