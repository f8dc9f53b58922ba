from .checked import check_study as check_study
from .drafted import (
    DraftedColumn as DraftedColumn,
    Facts as Facts,
    draft_study as draft_study,
    guessed_columns as guessed_columns,
)
from .exported import ExportedModel as ExportedModel, export_model as export_model
from .forecast import forecast_study as forecast_study
from .model import ReleasedModel as ReleasedModel
from .model_file import load_model as load_model
from .predicted import predict_table as predict_table
from .reading import load_study as load_study, parse_study as parse_study
from .run import StudyRun as StudyRun, run_study as run_study
from .schema import Study as Study
from .schema_json import study_schema as study_schema
from .settled import law_of as law_of
from .written import remake_report as remake_report
