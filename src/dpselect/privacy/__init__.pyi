from .adjacency import Adjacency as Adjacency
from .as_guarantee import as_guarantee as as_guarantee
from .bases import base_mechanism as base_mechanism
from .composition import compose as compose, worst_of as worst_of
from .events import from_dp_event as from_dp_event
from .guarantee import Guarantee as Guarantee
from .mechanisms.correlated_noise import correlated_noise as correlated_noise
from .mechanisms.fixed_batches import fixed_batches as fixed_batches
from .mechanisms.gaussian import gaussian as gaussian
from .mechanisms.known_curves import from_profile as from_profile, renyi_dp as renyi_dp, zcdp as zcdp
from .mechanisms.laplace import laplace as laplace
from .mechanisms.poisson_samples import dp_sgd as dp_sgd
from .mechanisms.pure import approximate_dp as approximate_dp, pure_dp as pure_dp
from .mechanisms.random_allocation import random_allocation as random_allocation
from .output.guarantee import OutputGuarantee as OutputGuarantee
from .paying import paid as paid
from .release import ClaimSpender as ClaimSpender, Release as Release, Spender as Spender
