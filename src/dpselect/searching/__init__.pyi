from .design import (
    DESIGNS as DESIGNS,
    Design as Design,
    DesignPrice as DesignPrice,
    PriceRequest as PriceRequest,
    design_names as design_names,
    listed as listed,
    search_design as search_design,
)
from .portfolio import CandidateTrials as CandidateTrials, Rows as Rows, TrialModel as TrialModel
from .two_stages import FIRST_STAGE as FIRST_STAGE, SHARE as SHARE, FirstStage as FirstStage, TwoStages as TwoStages
