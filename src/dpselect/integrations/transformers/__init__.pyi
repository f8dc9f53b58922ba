from .fine_tuning import fine_tune as fine_tune
