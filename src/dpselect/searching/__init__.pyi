from .design import (
    DESIGNS as DESIGNS,
    Design as Design,
    design_names as design_names,
    listed as listed,
    search_design as search_design,
)
from .stages import FIRST_STAGE as FIRST_STAGE, SHARE as SHARE, TwoStages as TwoStages
