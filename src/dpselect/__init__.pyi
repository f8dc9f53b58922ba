from .study.model_file import load_model as load_model
from .version import __version__ as __version__
