"""The contract of mechanisms that claim a guarantee, as tests to be run on a bad pair of neighbours.

With pytest, subclass and give a subject:

    class TestMyMechanism(AuditContract):
        @pytest.fixture
        def subject(self):
            def draw(neighbour, count, random):
                return np.array([my_mechanism(TWO if neighbour else ONE, random) for _ in range(count)])

            return Subject(name="mine", draw=draw, claim=my_guarantee)

Choose the pair that tells most: the closer it comes to the claim, the more the contract shows. A mechanism that keeps
its claim fails here with probability `error` at most for each of two audits. The source is keyed, so that it fails
always or never. Passing proves nothing beyond what `dpselect.audit` says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpselect.audit import Subject, audit
from dpselect.privacy import Guarantee, approximate_dp, pure_dp
from dpselect.randomness import keyed_source

__all__ = ["AuditContract", "cheaper"]


class AuditContract:
    """Tests of one mechanism. `subject` is a fixture.

    Attributes:
        draws: how many draws of each data set an audit takes.
        error: the probability that an audit refutes a claim that is true.
        planted: this share of the claim's epsilon is a claim that the audit refutes, or None if the pair is too mild
            for that (and then nothing shows that the audit can see this mechanism at all).
        planted_delta: the delta at which the planted claim stands.
        key: of the random source.
    """

    draws: ClassVar[int] = 100_000
    error: ClassVar[float] = 1e-6
    planted: ClassVar[float | None] = 0.5
    planted_delta: ClassVar[float] = 0.0
    key: ClassVar[int] = 1

    def test_the_claim_is_not_refuted(self, subject: Subject) -> None:
        """In neither direction."""
        found = audit(subject, draws=self.draws, confidence=1.0 - self.error, random=keyed_source(self.key))
        assert not found.violated, found.describe()

    def test_nor_with_the_data_sets_exchanged(self, subject: Subject) -> None:
        """Neighbours are neighbours both ways, and so is a guarantee."""
        exchanged = replace(subject, draw=lambda neighbour, count, random: subject.draw(not neighbour, count, random))
        found = audit(exchanged, draws=self.draws, confidence=1.0 - self.error, random=keyed_source(self.key))
        assert not found.violated, found.describe()

    def test_a_cheaper_claim_is_refuted(self, subject: Subject) -> None:
        """A planted violation: the audit sees this mechanism."""
        if self.planted is None:
            return
        false = replace(subject, claim=cheaper(subject.claim, self.planted, delta=self.planted_delta))
        found = audit(false, draws=self.draws, confidence=1.0 - self.error, random=keyed_source(self.key))
        assert found.violated, found.describe()

    def test_draws_are_fresh_and_as_many_as_asked_for(self, subject: Subject) -> None:
        """Two sources give two samples, unless hardly anything is random."""
        few = [subject.draw(side, 64, keyed_source(key)) for side in (False, True) for key in (1, 2)]
        assert all(drawn.shape[0] == 64 for drawn in few)
        assert not (self._same(few[0], few[1]) and self._varies(few[0])), "the draws ignore their source"
        assert not (self._same(few[2], few[3]) and self._varies(few[2])), "the draws ignore their source"

    @staticmethod
    def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()

    @staticmethod
    def _varies(drawn: NDArray[np.generic]) -> bool:
        return len(np.unique(drawn, axis=0)) > 2


def cheaper(claim: Guarantee, share: float, *, delta: float = 0.0) -> Guarantee:
    """Return a false claim: `share` of the epsilon of `claim` at `delta`, at the same delta.

    >>> cheaper(pure_dp(epsilon=2.0), 0.25).pure_epsilon
    0.5
    """
    epsilon = claim.epsilon(delta) * share
    if delta == 0.0:
        return pure_dp(epsilon=epsilon, adjacency=claim.adjacency)
    return approximate_dp(epsilon=epsilon, delta=delta, adjacency=claim.adjacency)
