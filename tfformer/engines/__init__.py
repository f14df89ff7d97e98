"""An artifact, opened, that translates: a run directory or an export, each by its own runtime.

`open_engine` is the entrance for whole programs; `find_artifact` tells what an artifact is without
loading it. Only the engine of a run and the engine of a SavedModel import TensorFlow.
"""

from tfformer.engines.artifact import Artifact as Artifact
from tfformer.engines.artifact import ArtifactError as ArtifactError
from tfformer.engines.artifact import find_artifact as find_artifact
from tfformer.engines.artifact import open_engine as open_engine
from tfformer.engines.engine import Engine as Engine
from tfformer.engines.engine import Signature as Signature
from tfformer.engines.engine import TensorSpec as TensorSpec
