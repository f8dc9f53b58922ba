from .game import SparseVectorGame as SparseVectorGame
from .gaussian import gaussian_game_guarantee as gaussian_game_guarantee
from .price import game_guarantee as game_guarantee
from .renyi import GameUsed as GameUsed
