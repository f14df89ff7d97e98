"""Metadata, extras and the console script."""

from pathlib import Path

from setuptools import setup

TENSORFLOW = ["tensorflow>=2.21,<2.22", "keras>=3.15,<4", "tensorflow-text>=2.21,<2.22"]

setup(
    name="tfformer",
    version="0.1.0",
    description="The Transformer for machine translation on TensorFlow and Keras 3: train, score, ship one artefact",
    long_description=(Path(__file__).parent / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=["tfformer"],
    package_data={"tfformer": ["recipes/*.yaml", "attention.html", "serve.html"]},
    install_requires=[*TENSORFLOW, "sentencepiece>=0.2.3", "sacrebleu>=2.5", "PyYAML>=6", "tensorboard>=2.20"],
    extras_require={
        "tfds": ["tensorflow-datasets>=4.9.9", "importlib_resources"],  # which its translation data sets import
        "plot": ["matplotlib>=3.11"],
        "ctranslate2": ["ctranslate2>=4.6"],
        "litert": ["ai-edge-litert>=2.3"],
        "serve": ["aiohttp>=3.12", "tensorflow-serving-api>=2.21,<2.22"],
        "bench": ["ctranslate2>=4.6", "keras-nlp>=0.32", "ai-edge-litert>=2.3", "aiohttp>=3.12", "nltk>=3.9"],
        "multi30k": ["sacremoses>=0.1.1"],
        "test": ["pytest>=8", "pytest-xdist>=3.8", "ruff>=0.14", "keras-nlp>=0.32", "nltk>=3.9"],
    },
    entry_points={"console_scripts": ["tfformer = tfformer.cli:main"]},
)
