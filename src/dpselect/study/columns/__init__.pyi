from .column import Column as Column
from .kind import KINDS as KINDS, ColumnKind as ColumnKind
from .scale import SCALES as SCALES, Scale as Scale
