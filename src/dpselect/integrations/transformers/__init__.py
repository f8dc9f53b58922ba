"""Private fine-tuning of a model in a Trainer of Hugging Face."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
