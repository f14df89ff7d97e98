"""Open runs and exports, and translate with them, each in its runtime.

Programs call `open_engine`; `find_artifact` identifies an artifact without loading it. Only the
engine of a run and the engine of a SavedModel import TensorFlow.
"""

from tfformer.engines.artifact import Artifact as Artifact
from tfformer.engines.artifact import ArtifactError as ArtifactError
from tfformer.engines.artifact import find_artifact as find_artifact
from tfformer.engines.artifact import open_engine as open_engine
from tfformer.engines.engine import Engine as Engine
from tfformer.engines.engine import Signature as Signature
from tfformer.engines.engine import TensorSpec as TensorSpec
