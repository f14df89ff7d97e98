"""The format of the engine CTranslate2."""
