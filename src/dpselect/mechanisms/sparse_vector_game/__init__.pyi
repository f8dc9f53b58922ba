from .game import SparseVectorGame as SparseVectorGame
from .price import game_guarantee as game_guarantee
