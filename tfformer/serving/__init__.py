"""The server of `tfformer serve`.

It takes the requests of TensorFlow Serving and gives its answers.
"""
