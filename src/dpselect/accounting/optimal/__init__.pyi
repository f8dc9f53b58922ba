from .best_of import ATOMS as ATOMS, optimal_best_of as optimal_best_of
