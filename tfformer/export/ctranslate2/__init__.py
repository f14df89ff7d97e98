"""The CTranslate2 format."""
