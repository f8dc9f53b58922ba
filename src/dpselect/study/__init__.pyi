from .check import check_study as check_study
from .export import export_model as export_model
from .forecast import forecast_study as forecast_study
from .model_file import load_model as load_model
from .reading import load_study as load_study, parse_study as parse_study
from .run import run_study as run_study
from .schema import Study as Study
