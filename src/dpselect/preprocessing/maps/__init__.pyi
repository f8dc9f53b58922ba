from .binned import Bins as Bins
from .centered import Centered as Centered, Logarithms as Logarithms
from .cosines import DirectionAndWaves as DirectionAndWaves, Waves as Waves
from .directions import DirectionOfRow as DirectionOfRow, Standardized as Standardized
from .gradients import EdgeDirections as EdgeDirections
from .row_map import MAPS as MAPS, MapOfRows as MapOfRows, MapOfTables as MapOfTables
