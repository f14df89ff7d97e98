"""The server of `tfformer serve`, with the requests and answers of TensorFlow Serving."""
