"""The folder of the project, wherever a test is in it."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
