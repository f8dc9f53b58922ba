from .price import SlicePrice as SlicePrice
from .price_comparison import noise_pays_from as noise_pays_from
from .reorder_slice_compute import (
    EachRow as EachRow,
    Kept as Kept,
    Ordered as Ordered,
    ReorderSliceCompute as ReorderSliceCompute,
    Steps as Steps,
)
