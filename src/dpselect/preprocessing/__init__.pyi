from .binned import PublicBins as PublicBins
from .centered import CenteredScale as CenteredScale
from .cosines import Cosines as Cosines
from .directions import RowDirection as RowDirection
from .gradients import OrientedGradients as OrientedGradients
from .joined import DirectionAndCosines as DirectionAndCosines
from .logarithmic import LogScale as LogScale
from .public_map import MAPS as MAPS, PublicMap as PublicMap, TableMap as TableMap
from .standardized import RowStandardization as RowStandardization
