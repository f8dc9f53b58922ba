from .game import SparseVectorGame as SparseVectorGame
from .price import game_guarantee as game_guarantee, gaussian_game_guarantee as gaussian_game_guarantee
from .renyi import GameUsed as GameUsed
