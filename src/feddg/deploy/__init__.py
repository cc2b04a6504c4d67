"""The final model as a folder that stands alone: saved, loaded, asked, judged, shown."""

from feddg.deploy.evaluate import Evaluation, evaluate
from feddg.deploy.inputs import Inputs, read_inputs
from feddg.deploy.load import Deployed, load_model
from feddg.deploy.manifest import Architecture, Manifest
from feddg.deploy.predict import Predictions, predict
from feddg.deploy.save import save_model

__all__ = [
    "Architecture",
    "Deployed",
    "Evaluation",
    "Inputs",
    "Manifest",
    "Predictions",
    "evaluate",
    "load_model",
    "predict",
    "read_inputs",
    "save_model",
]
