"""The APIs of the server, one per module."""
