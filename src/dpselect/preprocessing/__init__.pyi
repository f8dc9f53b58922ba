from .maps.row_map import MAPS as MAPS
from .transformers import (
    CenteredScale as CenteredScale,
    Cosines as Cosines,
    DirectionAndCosines as DirectionAndCosines,
    LogScale as LogScale,
    OrientedGradients as OrientedGradients,
    PublicBins as PublicBins,
    PublicMap as PublicMap,
    RowDirection as RowDirection,
    RowStandardization as RowStandardization,
)
