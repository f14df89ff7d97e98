"""The page that translates in the browser, around a LiteRT file."""
