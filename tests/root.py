"""The folder of the project, wherever a test lies in it."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
