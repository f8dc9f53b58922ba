from .binned import Bins as Bins
from .centered import Centered as Centered
from .cosines import Waves as Waves
from .directions import DirectionOfRow as DirectionOfRow
from .gradients import EdgeDirections as EdgeDirections
from .joined import DirectionAndWaves as DirectionAndWaves
from .logarithmic import Logarithms as Logarithms
from .row_map import MAPS as MAPS, MapOfRows as MapOfRows, MapOfTables as MapOfTables
from .standardized import Standardized as Standardized
