"""Citations outside source sentences, "as Liu, Talwar 2019" or "(Papernot and Steinke 2022)", for the theorem index.

Where prices are made, a docstring may cite a work without a source sentence if its file has an entry of that work; a
statement that follows the citation needs an entry of its own. Other citations stand in `CITED` with what holds them:

- `entry: WORK, STATEMENT`: a bound that has its entry under another file, or another work.
- `test: FILE: NAME`: a test of what the docstring says, where no statement has a number to enter.
- `no price: WHY`: no price rests on it, because it is a definition, a name, or about usefulness.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from citations import CITATION, NAME, NO_NAMES, plain, surnames
from pybtex.database import parse_file

ROOMS = ("accounting/", "ledger/", "mechanisms/", "privacy/", "repetitions/", "selection/")
"""Where prices are made."""

NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)*"
BEHIND = re.compile(
    rf"\)?, (Theorem|Lemma|Corollary|Proposition|Algorithm|Claim)s? ({NUMBER}(?:(?:, | and | to ){NUMBER})*)"
)

CITED = {
    ("accounting/best_of_k/__init__.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Lemma 7",
    ("accounting/best_of_k/adaptive_proposals.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Lemma 7",
    ("accounting/best_of_k/adaptive_proposals.py", "Wang et al. 2023"): "no price: a looser bound, for comparison",
    ("accounting/best_of_k/best_of.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Lemma 20",
    (
        "accounting/best_of_k/bounds/profile.py",
        "Koskela, Redberg, Wang 2024",
    ): "test: accounting/best_of_k/bounds/test_profile.py: test_gaussian_table",
    ("accounting/best_of_k/bounds/pure.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Corollary 3",
    (
        "accounting/best_of_k/feasible_region.py",
        "Dong, Roth, Su 2022",
    ): "test: accounting/best_of_k/bounds/test_profile.py: test_the_gaussian_trade_off_is_attained_by_half_lines",
    (
        "accounting/best_of_k/feasible_region.py",
        "Dong, Roth, Su 2022, Proposition 2.12",
    ): "test: accounting/best_of_k/bounds/test_profile.py: test_lines_lie_just_above_the_gaussian_curve",
    (
        "accounting/best_of_k/feasible_region.py",
        "Koskela, Redberg, Wang 2024",
    ): "test: accounting/best_of_k/bounds/test_profile.py: test_gaussian_table",
    ("accounting/best_of_k/feasible_region.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Lemma 7",
    ("accounting/best_of_k/search_bound.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Lemma 20",
    ("accounting/candidates/__init__.py", "Liu, Talwar 2019"): "entry: Liu, Talwar 2019, Theorem 3.1",
    ("accounting/candidates/__init__.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Corollary 16",
    ("accounting/candidates/quantile_coupling.py", "Liu, Talwar 2019"): "entry: Liu, Talwar 2019, Lemma 4.3",
    ("accounting/planning/plan.py", "Papernot, Steinke 2022"): "no price: which law suits which goal",
    ("accounting/stopping/__init__.py", "Hartmann et al. 2022"): "entry: Hartmann et al. 2022, Theorem 15",
    (
        "accounting/stopping/optimal_stopping.py",
        "Kairouz, Oh, Viswanath 2015",
    ): "entry: Kairouz, Oh, Viswanath 2015, Theorem 3.3",
    (
        "ledger/filters.py",
        "Feldman, Zrnic 2021, Theorem 4.3",
    ): "test: ledger/test_accounting.py: test_no_adversary_beats_a_filter",
    (
        "ledger/filters.py",
        "Koskela, Tobaben, Honkela 2023",
    ): "test: ledger/test_accounting.py: test_a_full_filter_keeps_its_promise_on_gaussians",
    ("ledger/filters.py", "Lecuyer 2021"): "entry: docs/theory/odometer.md, Theorem 1",
    ("privacy/event_kinds.py", "Cesar, Rogers 2021"): "test: privacy/test_event_kinds.py: test_kinds_of_newer_releases",
    ("ledger/filters.py", "Rogers et al. 2016"): "entry: docs/theory/odometer.md, Theorem 1",
    (
        "ledger/filters.py",
        "Smith, Thakurta 2022",
    ): "test: ledger/test_accounting.py: test_a_full_filter_keeps_its_promise_on_gaussians",
    (
        "ledger/filters.py",
        "Whitehouse et al. 2023",
    ): "test: ledger/test_accounting.py: test_a_full_filter_keeps_its_promise_on_gaussians",
    (
        "mechanisms/bounded_range_price.py",
        "Cesar, Rogers 2021",
    ): "test: mechanisms/test_bounded_range_price.py: test_bounded_range_curves",
    ("mechanisms/bounded_range_price.py", "Dong, Durfee, Rogers 2020"): "entry: Dong, Durfee, Rogers 2020, Lemma 3.2",
    ("mechanisms/bounded_range_price.py", "Durfee, Rogers 2019"): "entry: Durfee, Rogers 2019, Lemma 4.2",
    ("mechanisms/bounded_range_price.py", "Harrison, Manurangsi 2026"): "no price: a number for comparison",
    ("mechanisms/brownian.py", "Robbins 1970"): "entry: docs/theory/noise-reduction.md, Theorem 6",
    ("mechanisms/brownian.py", "Whitehouse et al. 2022"): "entry: docs/theory/noise-reduction.md, Theorem 6",
    ("mechanisms/exponential.py", "McSherry, Talwar 2007"): "entry: Durfee, Rogers 2019, Lemma 4.2",
    (
        "mechanisms/flipping.py",
        "Ding et al. 2021",
    ): "test: mechanisms/test_flipping.py: test_permute_and_flip_is_noisy_max_with_exponential_noise",
    (
        "mechanisms/interquantile_range.py",
        "Dwork, Lei 2009",
    ): "test: mechanisms/test_interquantile_range.py: test_the_interquantile_range_keeps_its_guarantee",
    (
        "mechanisms/large_margin.py",
        "Chaudhuri, Hsu, Song 2014",
    ): "test: mechanisms/test_large_margin.py: test_large_margin_mechanism_exact_audit",
    ("mechanisms/noise_reduction.py", "Ligett et al. 2017"): "entry: docs/theory/noise-reduction.md, Theorem 2",
    (
        "mechanisms/noisy_max.py",
        "Ding et al. 2021",
    ): "test: mechanisms/test_flipping.py: test_permute_and_flip_is_noisy_max_with_exponential_noise",
    (
        "mechanisms/noisy_max.py",
        "Dwork, Roth 2014, Claim 3.9",
    ): "test: mechanisms/test_scores.py: test_pure_epsilon_is_attained_and_never_exceeded",
    (
        "mechanisms/propose_test_release.py",
        "Dwork, Lei 2009",
    ): "test: mechanisms/test_instability.py: test_fact_12_dwork_and_lei_s_delta",
    (
        "mechanisms/propose_test_release.py",
        "Hartmann et al. 2022",
    ): "test: mechanisms/test_instability.py: test_fact_11_a_cascade_has_the_deltas_of_its_stages",
    (
        "mechanisms/smooth_sensitivity.py",
        "Nissim, Raskhodnikova, Smith 2007",
    ): "no price: the definition of what the caller must ensure",
    ("mechanisms/sparse_release.py", "Hartmann et al. 2022"): "entry: Hartmann et al. 2022, Lemma 8",
    ("mechanisms/sparse_release.py", "Lyu, Su, Li 2017"): "no price: how noise is shared out, both parts are paid",
    ("mechanisms/sparse_vector.py", "Lyu, Su, Li 2017, Algorithm 7"): "entry: Lyu, Su, Li 2017, Theorem 4",
    (
        "mechanisms/trimmed_mean.py",
        "Dwork, Lei 2009",
    ): "test: mechanisms/test_trimmed_mean.py: test_trimmed_means_need_their_delta_and_no_more",
    (
        "privacy/losses/composition.py",
        "Higham 2002, Theorem 24.2",
    ): "test: privacy/losses/test_composition.py: test_an_understated_mass_is_caught",
    (
        "privacy/losses/connect_the_dots.py",
        "Doroshenko et al. 2022",
    ): "test: privacy/losses/test_connect_the_dots.py: test_connecting_the_dots_lies_above_the_profile_at_both_signs",
    (
        "privacy/losses/discretise.py",
        "Doroshenko et al. 2022",
    ): "test: privacy/losses/test_pairs.py: test_pairs_enclose_the_profile",
    ("privacy/losses/discretise.py", "Zhu, Dong, Wang 2022"): "no price: a definition",
    (
        "privacy/losses/pld.py",
        "Doroshenko et al. 2022",
    ): "test: privacy/losses/test_connect_the_dots.py: test_the_lower_hull_is_the_largest_convex_function",
    ("privacy/losses/pld.py", "Mironov 2017, Proposition 3"): "no price: a rough number that a mesh is chosen by",
    ("privacy/mechanisms/known_curves.py", "Bun, Steinke 2016"): "no price: a definition",
    ("privacy/mechanisms/known_curves.py", "Mironov 2017"): "no price: a definition",
    (
        "privacy/mechanisms/poisson_samples.py",
        "Mironov, Talwar, Zhang 2019",
    ): "entry: Mironov, Talwar, Zhang 2019, Theorem 4",
    (
        "privacy/mechanisms/pure.py",
        "Bun, Steinke 2016, Proposition 3.3",
    ): "no price: a weaker bound, named beside the exact curve",
    (
        "privacy/mechanisms/pure.py",
        "Kairouz, Oh, Viswanath 2015",
    ): "entry: Kairouz, Oh, Viswanath 2015, Theorem 3.3",
    ("privacy/output/__init__.py", "Hartmann et al. 2022"): "entry: Hartmann et al. 2022, Theorem 7",
    ("privacy/output/filter.py", "Hartmann et al. 2022, Algorithm 6"): "entry: Hartmann et al. 2022, Theorem 7",
    (
        "privacy/output/optimal_composition.py",
        "Hartmann et al. 2022",
    ): "test: privacy/output/test_optimal_composition.py: test_table_1",
    (
        "privacy/renyi.py",
        "Bretagnolle, Huber 1979",
    ): "test: privacy/test_renyi.py: test_a_delta_that_total_variation_cannot_exceed_costs_nothing",
    ("repetitions/distribution.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Lemma 22",
    ("repetitions/negative_binomial.py", "Liu, Talwar 2019"): "no price: the name of a law",
    ("repetitions/negative_binomial.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Theorem 2",
    (
        "repetitions/splitting.py",
        "Kingman 1993",
    ): "test: repetitions/test_splitting.py: test_poisson_counts_are_independent_and_no_others_are",
    (
        "repetitions/splitting.py",
        "Rao, Rubin 1964",
    ): "test: repetitions/test_splitting.py: test_poisson_counts_are_independent_and_no_others_are",
    ("repetitions/truncation.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Lemma 22",
    ("selection/above.py", "Liu, Talwar 2019, Algorithm 1"): "entry: Liu, Talwar 2019, Theorem 3.1",
    ("selection/amplification.py", "Liu, Talwar 2019"): "entry: Liu, Talwar 2019, Theorem 3.1",
    ("selection/best.py", "Liu, Talwar 2019, Algorithm 2"): "entry: Liu, Talwar 2019, Theorem 3.2",
    ("selection/best.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Lemma 7",
    ("selection/conditional.py", "Papernot, Steinke 2022"): "entry: Papernot, Steinke 2022, Corollary 16",
    ("selection/dummies.py", "Liu, Talwar 2019"): "entry: Liu, Talwar 2019, Theorem C.1",
    ("selection/one_sided.py", "Liu, Talwar 2019"): "entry: Liu, Talwar 2019, Theorem 4.6",
    ("selection/percentile_sparse_vector.py", "Liu, Talwar 2019"): "entry: Liu, Talwar 2019, Theorem 4.1",
    ("selection/sampled_sparse_vector.py", "Liu, Talwar 2019"): "entry: Liu, Talwar 2019, Theorem 4.4",
}
"""By file and what it cites: what holds it."""


def as_sources_write(bibliography: Path) -> dict[tuple[str, ...], str]:
    """Every work as source sentences name it, by all of its authors and by the first and "et al.", with the year."""
    found = {}
    for entry in parse_file(str(bibliography)).entries.values():
        names = surnames(entry)
        for year in {entry.fields["year"], entry.fields.get("cited", entry.fields["year"])}:
            work = f"{', '.join(names) if len(names) < 4 else f'{names[0]} et al.'} {year}"
            found[(*names, year)] = found[(names[0], "et al.", year)] = work
    return found


def citations_in(text: str, known: Mapping[tuple[str, ...], str]) -> Iterator[tuple[str, str]]:
    """(work, statement) of all that a text on one line cites; no statement where none follows.

    A work that the bibliography lacks is named by what the text says.
    """
    for match in CITATION.finditer(text):
        names = [plain(name) for name in re.findall(NAME, match[0]) if name not in NO_NAMES]
        others = ("et al.",) if "et al" in match[0] else ()
        tails = [(*names[first:], *others, match[1]) for first in range(len(names))]
        here = " ".join([", ".join(names), *others, match[1]])
        behind = BEHIND.match(text, match.end())
        work = next((known[tail] for tail in tails if tail in known), here)
        if names and behind:
            yield from ((work, f"{behind[1]} {number}") for number in re.findall(NUMBER, behind[2]))
        elif names:
            yield work, ""


def without_support(
    docstrings: Iterable[tuple[str, str]],
    known: Mapping[tuple[str, ...], str],
    used: Mapping[tuple[str, str], Collection[str]],
    held: Mapping[tuple[str, str], str],
    tests: Path,
) -> list[str]:
    """What is wrong with the citations of these docstrings, (file, text) without its source sentences.

    Args:
        docstrings: of the library.
        known: see `as_sources_write`.
        used: the files that rest on each entry, (work, statement).
        held: `CITED`, or another table of its kind.
        tests: the folder of the tests.
    """
    here = {(file, work) for (work, _), files in used.items() for file in files}
    missing = set()
    for file, text in docstrings:
        for work, statement in citations_in(" ".join(text.split()), known) if file.startswith(ROOMS) else ():
            if statement and (work, statement) not in used:
                missing.add((file, f"{work}, {statement}"))
            elif not statement and (file, work) not in here:
                missing.add((file, work))
    wrong = [f"{file} cites {what}: no entry, and nothing that holds it" for file, what in sorted(missing - set(held))]
    wrong += [f"{file}, {what}: nothing needs to hold it" for file, what in sorted(set(held) - missing)]
    for (file, what), reason in held.items():
        if not holds(reason, used, tests):
            wrong.append(f"{file}, {what}: there is no such thing: {reason}")
    return wrong


def holds(reason: str, used: Mapping[tuple[str, str], Collection[str]], tests: Path) -> bool:
    """Whether the entry or the test that a reason names is there; a reason that names neither must say why."""
    kind, _, what = reason.partition(": ")
    if kind == "entry":
        return tuple(what.rsplit(", ", 1)) in used
    if kind == "test":
        file, _, name = what.partition(": ")
        path = tests / file
        return (
            path.exists() and re.search(rf"^ *def {name}\(", path.read_text(encoding="utf-8"), re.MULTILINE) is not None
        )
    return kind == "no price" and bool(what)
