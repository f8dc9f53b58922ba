from .adjacency import Adjacency as Adjacency
from .composition import compose as compose, worst_of as worst_of
from .events import from_dp_event as from_dp_event
from .guarantee import Guarantee as Guarantee, Statement as Statement
from .losses.dominating_pair import DominatingPair as DominatingPair
from .mechanisms import (
    approximate_dp as approximate_dp,
    dp_sgd as dp_sgd,
    from_profile as from_profile,
    gaussian as gaussian,
    laplace as laplace,
    pure_dp as pure_dp,
    renyi_dp as renyi_dp,
    zcdp as zcdp,
)
from .output.guarantee import OutputGuarantee as OutputGuarantee
from .paying import Payment as Payment, paid as paid
from .realised import RealisedPrice as RealisedPrice
from .release import Receipt as Receipt, Release as Release, Spender as Spender
