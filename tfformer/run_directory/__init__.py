"""The run directory, which training writes and every other command reads.

config.json         the recipe in full; digests of the recipe, the tokenizers and the texts
tokenizer.model     the vocabulary (or source.model and target.model)
*.pieces.json       only beside an imported vocabulary: its ids
imported.json       only in an imported run: origin, licence and the original order of ids, with a
                    digest of this file
best.weights.h5     the weights with the best validation score; the last line contains the digests
                    of its bytes and of the model's settings
shortlist.npz       after `tfformer shortlist`, or imported: the target pieces that may translate
                    each source piece, with digests as in best.weights.h5
resume.npz          every variable and the epochs so far, from which --resume continues
metrics.jsonl       one line per epoch
result.json         written last, when training has finished; the first export adds the temperature
                    that calibrates the confidences
tensorboard/        the same figures and sample texts for TensorBoard
.lock               locked during training; harmless if no process has locked it
"""

from tfformer.data.tokenizers import Tokenizers as Tokenizers
from tfformer.run_directory.model_kinds import MODEL_KINDS as MODEL_KINDS
from tfformer.run_directory.model_kinds import Model as Model
from tfformer.run_directory.model_kinds import new_model as new_model
from tfformer.run_directory.model_kinds import settings_of as settings_of
from tfformer.run_directory.run import Calibration as Calibration
from tfformer.run_directory.run import Run as Run
from tfformer.run_directory.run import first_line as first_line
from tfformer.run_directory.run import locked_for_new_run as locked_for_new_run
from tfformer.run_directory.run import locked_for_resume as locked_for_resume
from tfformer.storage.artifact_folders import check_free as check_free
