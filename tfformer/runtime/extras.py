"""Optional libraries, and the extra that installs each."""

EXTRAS = {  # module -> extra
    "tensorflow": "tensorflow",
    "tensorflow_text": "tensorflow",
    "keras": "tensorflow",
    "h5py": "tensorflow",
    "safetensors": "tensorflow",
    "ml_dtypes": "tensorflow",
    "yaml": "tensorflow",
    "sacrebleu": "tensorflow",
    "ai_edge_litert": "litert",
    "ctranslate2": "ctranslate2",
    "huggingface_hub": "hub",
    "keras_hub": "keras-hub",
    "tokenizers": "keras-hub",
    "ray": "ray",
    "fastapi": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "cachetools": "serve",
    "fasttext": "serve",
    "babel": "serve",
}


def install_line(error: ModuleNotFoundError) -> str | None:
    """Return how to install the library that an import needs; None if no extra installs it."""
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    return f"this needs {module}, which is not installed: pip install -e '.[{EXTRAS[module]}]'"
