"""A request whose runs cost 1/noise each, with the noise that a share of the total leaves."""

from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed
from dpselect.searching.design import DesignPrice, PriceRequest


def request(epsilon=2.0, **changes):
    """`searched` gives runs of which all that are drawn on average cost the share of epsilon."""

    def searched(repetitions, share):
        law = repetitions or Fixed(count=1)
        noise = law.limit / (share * epsilon)
        return DesignPrice(repetitions=law, noise=noise, parts=(pure_dp(epsilon=1.0 / noise),))

    def pure(noise):
        return pure_dp(epsilon=1.0 / noise)

    given = {
        "epsilon": epsilon,
        "delta": 0.0,
        "searched": searched,
        "last": pure,
        "trials": lambda: (pure, pure),
        "choice": lambda share: ExponentialMechanism(epsilon=share, sensitivity=1),
    }
    return PriceRequest(**{**given, **changes})
