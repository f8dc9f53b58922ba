from .scale import SCALES as SCALES, Scale as Scale
