"""All broken programs whose exact laws are in this folder, as subjects of an audit, each beside its corrected self.

docs/evidence/zoo.md says where each was seen; docs/evidence/audit-power.md which audit sees it with how many draws.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from dpselect.audit import FiniteSubject
from tests.audits import broken_sparse_vectors, propose_test_laws
from tests.audits.defects import Defect
from tests.audits.miscounted_runs import MISCOUNTED
from tests.audits.naive_selectors import NAIVE
from tests.audits.public_mistakes import MISTAKES

__all__ = ["ZOO", "Specimen"]


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """A program with one defect.

    Attributes:
        name: as in docs/evidence/zoo.md.
        broken: its laws on two neighbours, and its claim.
        corrected: the laws without the defect, on the same two, and the same claim.
    """

    name: str
    broken: Callable[[], FiniteSubject]
    corrected: Callable[[], FiniteSubject]


def _of_defect(make: Callable[[], Defect]) -> Specimen:
    return Specimen(
        name=make.__name__,
        broken=lambda: make().audit_subject(),
        corrected=lambda: make().audit_subject(corrected=True),
    )


def _of_sparse_vector(variant: broken_sparse_vectors.Variant) -> Specimen:
    cap = inspect.signature(variant).parameters["c"].default
    return Specimen(
        name=variant.__name__,
        broken=lambda: variant().audit_subject(),
        corrected=lambda: broken_sparse_vectors.corrected(c=cap).audit_subject(variant().game),
    )


_OUTLIERS = (0, 0, 0, 60, 60), (0, 0, 60, 60, 60)
_PAIRS = {
    "noiseless_test": ((0, 0, 0, 2, 2), (0, 0, 0, 1, 2)),
    "distance_one_too_large": _OUTLIERS,
    "noise_for_the_data": ((0, 60, 60, 60, 60), (0, 0, 60, 60, 60)),
    "local_sensitivity_tested": ((0, 0, 0, 0, 60), (0, 0, 0, 60, 60)),
    "flat_data_refused": ((0, 0, 0, 1, 1), (0, 0, 0, 0, 1)),
}


def _of_proposal_test(law: propose_test_laws.TrimmedMeanLaw) -> Specimen:
    pair, subject = _PAIRS[law.__name__], propose_test_laws.audit_subject
    return Specimen(
        name=law.__name__,
        broken=partial(subject, law, *pair),
        corrected=partial(subject, propose_test_laws.trimmed_mean_law, *pair),
    )


ZOO: tuple[Specimen, ...] = (
    *(_of_defect(make) for make in (*NAIVE, *MISCOUNTED, *MISTAKES)),
    *(_of_sparse_vector(variant) for variant in broken_sparse_vectors.BROKEN),
    *(_of_proposal_test(law) for law in propose_test_laws.BROKEN),
)
