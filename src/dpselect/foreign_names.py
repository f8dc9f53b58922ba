"""Mistakes in a call: the names that other libraries have for our arguments, and what to type in their place."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any, Final

from dpselect.cures import EXAMPLES, example

__all__ = [
    "OPTIONS",
    "advice_for",
    "attribute_advice",
    "foreign_names_of",
    "meant",
    "misuse",
    "unknown",
    "wrong_settings",
]

OPTIONS: Final = "_dpselect_options"
"""The attribute of a function that names the callables whose arguments its `**options` are."""
_OWNERS: Final = ("self", "cls")

_SAME: Final[Mapping[str, str]] = {
    "accounting": "accountant composition accounting_method",
    "adjacency": "neighboring_relation neighbouring_relation neighboring neighbouring neighbor_type relation",
    "candidate": "proposal mechanism run",
    "categories": "levels categorical_values vocabulary",
    "choices": "values options categories",
    "class_weights": "class_weight weights",
    "classes": "class_names labels n_classes num_classes",
    "clip_norm": "max_grad_norm l2_norm_clip clipping_norm max_norm clipping_threshold gradient_clip clip C",
    "consultations": "max_queries n_consultations n_queries num_queries queries",
    "count": "n trials k n_runs",
    "cv": "folds n_folds n_splits",
    "confidence": "confidence_level",
    "dataset_size": "n n_rows num_rows num_examples sample_size n_samples",
    "data": "X dataset df frame records",
    "delta": "target_delta delta_total",
    "draws": "n_samples num_samples samples n_trials",
    "domain_size": "size n_categories cardinality",
    "epsilon": "eps target_epsilon privacy_budget budget epsilon_budget epsilon_total",
    "epsilons": "rdp rdp_epsilons eps",
    "executor": "backend client pool parallel",
    "failure_probability": "beta alpha delta significance failure_prob error_probability tau",
    "fit_intercept": "intercept add_intercept",
    "granularity": "resolution precision step grid_step",
    "hidden_units": "hidden_layer_sizes hidden_size n_hidden hidden_dim",
    "high": "upper max maximum",
    "gamma": "p prob probability stopping_probability",
    "format": "date_format datefmt",
    "label": "name run_name study_name",
    "learning_rate": "lr step_size learning_rate_init eta0 eta",
    "ledger": "spender accountant privacy_accountant odometer",
    "limit": "n max_count",
    "low": "lower min minimum",
    "lower": "low min min_value lower_bound minimum a_min amin",
    "max_positives": "c cutoff max_above max_positive",
    "max_queries": "num_queries n_queries queries",
    "max_runs": "max_trials max_evals max_iter n_iter n_trials n_runs num_samples",
    "mean": "lam mu rate lambda_ expected_runs n_trials",
    "mean_runs": "mean n_trials expected_runs n_runs",
    "missing_values": "na_values null_values null nulls",
    "monotonic": "monotone monotonicity",
    "noise_multiplier": "sigma scale std stddev standard_deviation noise noise_scale noise_std noise_stddev",
    "n_estimators": "n_trees num_trees n_rounds num_boost_round num_rounds iterations",
    "nominal_rows": "n_rows num_examples dataset_size n_samples sample_size num_rows",
    "objective": "func fn trainable objective_function function",
    "orders": "alphas rdp_orders",
    "order": "alpha",
    "path": "filename file filepath file_name where model location",
    "param_distributions": "space search_space search_spaces params param_space",
    "probabilities": "pmf weights probs",
    "probability": "p prob",
    "q": "quant alpha percentile quantile p",
    "qs": "quants alphas probs percentiles q quantiles",
    "queries": "num_queries n_queries max_queries",
    "questions": "queries num_queries n_queries",
    "regularization": "alpha l2 reg reg_lambda lambda_ l2_regularization penalty",
    "repetitions": "distribution law",
    "rho": "zcdp rho_zcdp",
    "row_norm": "data_norm max_row_norm feature_norm",
    "sampling_rate": "sample_rate q sampling_probability",
    "scale": "b noise_parameter noise_scale",
    "scores": "utilities utility qualities",
    "scoring": "metric metrics score eval_metric",
    "sensitivity": "l1_sensitivity l2_sensitivity query_sensitivity score_sensitivity d_in",
    "space": "param_distributions search_space search_spaces params param_space config",
    "spender": "ledger accountant privacy_accountant budget odometer",
    "steps": "iterations num_steps n_steps max_iter n_iter num_iterations",
    "stop_probability": "gamma stopping_probability p",
    "store": "storage checkpoint output storage_path",
    "tasks": "n_tasks num_tasks",
    "subsample_size": "sample_size block_size batch_size",
    "threshold": "T cutoff",
    "time_zone": "tz timezone",
    "trials": "n",
    "upper": "high max max_value upper_bound maximum a_max amax",
    "validation_fraction": "test_size validation_split validation_size val_size",
    "variance": "sigma_squared sigma2 var",
    "values": "x data array column",
    "weights": "sample_weight sample_weights weight",
    "workers": "n_jobs num_workers n_workers max_workers processes",
}
"""By our argument, the names that others have for the very same."""

_SHOWN: Final[Mapping[str, str]] = {
    "noise_multiplier": " (standard deviation / sensitivity)",
    "sampling_rate": " (batch size / number of rows)",
    "scale": " (noise scale / sensitivity)",
}
"""The unit of an argument, where others count in another one."""

_RUNS: Final = (
    "the number of runs is drawn from a distribution and stays secret, which is what makes the search cheap: give "
    "repetitions=Harmonic(limit=30), or epsilon= and delta= alone; a fixed number is Fixed(count=10), which costs more"
)
_SEED: Final = (
    "anyone who knows a seed knows the noise. Leave it out, or in a test give "
    "random=dpselect.randomness.keyed_source(1)"
)
_GRID: Final = (
    "a grid runs different candidates once each; the best of K is priced for K draws with replacement. Give {ours}= "
    "with a distribution for every parameter; the lists of the same dictionary will do"
)
_BOUNDS: Final = "give lower= and upper=, which must be public: write lower=0, upper=100 with yours"
_SECRET: Final = "the guarantee covers the winner alone; scores, settings and number of the other runs are secret"
_MEAN: Final = "use {name}.with_mean(mean={given!r})"
_TOTAL: Final = "noise is set by noise_multiplier=; for a total, use calibrate or PrivateSearchCV(epsilon=)"
_NOISE: Final = "noise_multiplier=calibrate(lambda noise: {}, epsilon=1.0, delta=1e-6)"
_TRAINING: Final = _NOISE.format("dp_sgd(noise_multiplier=noise, sampling_rate=0.01, steps=100)")
_LEARNER: Final = (
    f"{_TOTAL}. Write "
    f"{_NOISE.format('{0}(noise_multiplier=noise, nominal_rows=1000).guarantee()')} with your settings and total"
)
_FOR_TOTAL: Final[Mapping[str, str]] = {
    "gaussian": f"{_TOTAL}. Write {_NOISE.format('gaussian(noise_multiplier=noise)')} with your total",
    "dp_sgd": f"{_TOTAL}. Write {_TRAINING} with your rate, steps and total",
    "PrivateTraining": f"{_TOTAL}. Write {_TRAINING} with your rate, steps and total",
    "DPSGDClassifier": _LEARNER.format("DPSGDClassifier"),
    "DPSGDRegressor": _LEARNER.format("DPSGDRegressor").replace("=1000)", "=1000, label_bounds=(0, 100))"),
}
"""The advice for a total, where one mechanism says what a noise costs. Others do not cost what a Gaussian does."""


def _each(names: str, advice: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), advice)


_OTHERWISE: Final[Mapping[str, Mapping[str, str]]] = {
    "base": _each("guarantee mechanism", "did you mean base=, the guarantee of one run?"),
    "confidence": _each("alpha significance", "give confidence=, 1 less the significance"),
    "epsilon": _each("rho", "give epsilon=; a zCDP guarantee is zcdp(rho=)")
    | _each("scale noise_scale b", "write epsilon=1.0 (sensitivity / scale)"),
    "execution": _each(
        "timeout", "write execution=Execution(limits=Limits(seconds=60, failure_is_private=True)) if that is true"
    ),
    "executor": _each("n_jobs workers num_workers", "write executor=JoblibExecutor(workers=2)"),
    "expected_batch_size": _each("batch_size", "did you mean expected_batch_size=, a public number?"),
    "failure_probability": _each("confidence confidence_level", "give failure_probability=, 1 less the confidence"),
    "gamma": _each("mean", _MEAN),
    "limit": _each("mean", "give limit=, the largest number of runs; its mean follows"),
    "lower": _each("bounds range", _BOUNDS),
    "noise_multiplier": _each("epsilon target_epsilon", _TOTAL)
    | _each("sensitivity l2_sensitivity", "leave it out: noise_multiplier= is the standard deviation / sensitivity"),
    "objective": _each("direction maximize minimize", "leave it out: the highest score wins, so negate a loss")
    | _each(
        "pruner", "leave it out: a run that stops early by its score reads more of the data than its guarantee covers"
    )
    | _each("callbacks catch show_progress_bar gc_after_trial verbose", "leave it out: nothing of a run may be seen"),
    "param_distributions": _each("param_grid", _GRID)
    | _each("error_score", "a run that fails counts as the worst, and whether it failed is protected")
    | _each("return_train_score", _SECRET)
    | _each("pre_dispatch", "see executor=")
    | _each("iid", "it is gone from scikit-learn too"),
    "random": _each("random_state seed rng random_seed prng generator", _SEED),
    "repetitions": _each("n_trials n_iter num_trials num_samples n_runs max_evals n_calls num_runs", _RUNS),
    "regularization": _each("C", "give regularization=, about 1 / (C * number of rows)"),
    "rho": _each("epsilon", "give rho=, or write approximate_dp(epsilon=, delta=)"),
    "scale": _each("epsilon", "give scale= (sensitivity / epsilon)")
    | _each("sigma", "give scale=, sigma / sqrt(2)")
    | _each("sensitivity l1_sensitivity", "leave it out: scale= is the noise scale / sensitivity"),
    "space": _each("param_grid", _GRID),
    "variance": _each("sigma std stddev scale", "give variance=, the square of the standard deviation"),
    "steps": _each("epochs num_epochs n_epochs", "write steps=100 (epochs / sampling_rate)")
    | _each("solver tol verbose warm_start l1_ratio dual", "leave it out: the number of steps is fixed in advance"),
    "epsilon_threshold": _each("epsilon eps", "write epsilon_threshold=0.5, epsilon_queries=0.5"),
    "sampling_rate": _each(
        "batch_size lot_size expected_batch_size", "write sampling_rate=0.01 (batch size / number of rows)"
    ),
    "request": _each(
        "metric questions answers tolerance",
        'write request=HoldoutRequest(metric="accuracy", questions=100, answers=10, failure_probability=0.05)',
    ),
    "proposal": _each("sampler", "leave it out: runs draw from space=, or from proposal= if later runs learn"),
    "store": _each("storage", 'write store="search.store", a file of this machine'),
}
"""The names that stand for something else, or that need a word more."""


def misuse(call: Callable[..., Any], name: str, args: tuple[Any, ...], given: Mapping[str, Any]) -> str | None:
    """The mistake in the arguments of a call, or None if they fit, so that the error is another one.

    Shows names alone: what was given may be private.
    """
    try:
        inspect.signature(call).bind(*args, **given)
    except TypeError as error:
        return unknown(call, name, given) or _misplaced(call, name, args, given) or f"{name}: {error}"
    return None


def unknown(call: Callable[..., Any], name: str, given: Mapping[str, Any]) -> str | None:
    """The advice for arguments that are not among those of a call, or None if all of them are."""
    takes = list(_takes(call))
    wrong = {each: advice_for(each, takes, name=name, given=given[each]) for each in given if each not in takes}
    if not hasattr(call, OPTIONS) and any(each.kind is each.VAR_KEYWORD for each in _parameters(call)):
        wrong = {each: advice for each, advice in wrong.items() if advice is not None}
    if not wrong:
        return None
    foreign, advice = next(iter(wrong.items()))
    if advice is None:
        listed = ", ".join(dict.fromkeys(f"{each}=" for each in takes)) or "none"
        return f"{name} has no argument {foreign}: it takes {listed}"
    if len(wrong) > 1:
        return _several(name, wrong, takes)
    return f"{name} has no argument {foreign}: {advice}"


def _several(name: str, wrong: Mapping[str, str | None], takes: list[str]) -> str:
    """The error for several wrong names: what to write for those that have a meaning here, then each advice."""
    written, left, notes = [], [], []
    for foreign, advice in wrong.items():
        ours = meant(foreign, takes) or next((our for our in takes if foreign in _OTHERWISE.get(our, {})), None)
        if ours is None or (advice or "").startswith("leave it out"):
            left.append(foreign)
        elif (advice or "").startswith("did you mean"):
            written.append(f"{ours}=...")
        else:
            written.append(example(ours) or f"{ours}=...")
            notes += [f"{ours} is {unit}" for unit in re.findall(r"\(([^()]+)\)$", advice or "")]
    said = [f"write {', '.join(written)}"] if written else []
    said += [f"leave {' and '.join(left)} out"] if left else []
    more = f" ({', '.join(notes)})" if notes else ""
    return f"{name} has no argument {' or '.join(wrong)}: {', and '.join(said)}{more}"


def _misplaced(call: Callable[..., Any], name: str, args: tuple[Any, ...], given: Mapping[str, Any]) -> str | None:
    """The call to write, for too many arguments without a name or for missing ones."""
    parameters = _parameters(call)
    placed = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    owned = bool(placed) and placed[0].name in _OWNERS
    placed, args = (placed[1:], args[1:]) if owned else (placed, args)
    owner, dot, method = name.rpartition(".")
    written = f"{owner.lower()}.{method}" if owned and dot and parameters[0].name == "self" else name
    needed = [each for each in parameters if each.default is each.empty and each.kind is each.KEYWORD_ONLY]
    if len(args) > len(placed):
        if len(placed) == 1 and placed[0].name == "choices":
            return f"{name} takes one list: write {written}([{', '.join(['...'] * len(args))}])"
        names = [each.name for each in placed]
        allowed = " and ".join(names) or "nothing"
        shown = ", ".join([*names, *_named(parameters, given, len(args) - len(placed)), *_partners(call, given)])
        return f"{name} takes {allowed} without a name: write {written}({shown})"
    absent = [each for each in [*placed[len(args) :], *needed] if each.default is each.empty and each.name not in given]
    if not absent:
        return None
    first = [each.name for each in placed[: len(args)]]
    added = [example(each.name) or f"{each.name}=..." for each in absent] + _partners(call, given)
    shown = ", ".join([*first, *(f"{each}=..." for each in given), *added])
    return f"{name} needs {' and '.join(each.name for each in absent)}: write {written}({shown})"


def _named(parameters: Sequence[inspect.Parameter], given: Mapping[str, Any], beyond: int) -> list[str]:
    """So many arguments more by their names: in their order if each has a place, else with values that do."""
    free = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.name not in given]
    named = [f"{each}=..." if len(free) >= beyond else example(each) or f"{each}=..." for each in free[:beyond]]
    return [*named, *(f"{each}=..." for each in given)]


_PARTNERS: Final = (
    ("repetitions", "epsilon"),
    ("lower", "domain_size", "categories"),
    ("upper", "domain_size", "categories"),
)
"""Arguments that are not needed by themselves: one of each group must be given, mostly the first."""


def _partners(call: Callable[..., Any], given: Mapping[str, Any]) -> list[str]:
    needed = {each.name for each in _parameters(call) if each.default is each.empty}
    takes = set(_takes(call)) - needed
    groups = [group for group in _PARTNERS if takes.issuperset(group) and not given.keys() & set(group)]
    return [example(group[0]) or "" for group in groups]


def _parameters(call: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(call).parameters.values())


def _takes(call: Callable[..., Any]) -> Iterator[str]:
    """The arguments that can be given by name, those behind `**options` among them."""
    for each in _parameters(call):
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) and each.name not in _OWNERS:
            yield each.name
    for other in getattr(call, OPTIONS, ()):
        yield from _takes(other)


def advice_for(foreign: str, ours: Iterable[str], *, name: str, given: object) -> str | None:
    """The advice for an argument that the callable of this name does not have, or None if there is none.

    `ours` are the arguments that it has. The given value is shown only if it sets a distribution of the number of runs.

    >>> advice_for("sigma", ["noise_multiplier"], name="gaussian", given=4)
    'did you mean noise_multiplier= (standard deviation / sensitivity)?'
    """
    known = tuple(ours)
    for our in sorted(known, key=lambda our: foreign not in our):  # batch_size is an expected_batch_size first
        said = _OTHERWISE.get(our, {}).get(foreign)
        if said is not None:
            said = _FOR_TOTAL.get(name, said) if said is _TOTAL else said
            return said.format(ours=our, name=name, given=given)
    found = meant(foreign, known)
    return None if found is None else f"did you mean {found}={_SHOWN.get(found, '')}?"


def meant(foreign: str, ours: Iterable[str]) -> str | None:
    """The one of our names that another name stands for or is similar to, or None.

    >>> meant("sigma", ["noise_multiplier"]), meant("epsilonn", ["epsilon"]), meant("colour", ["epsilon"])
    ('noise_multiplier', 'epsilon', None)
    """
    known = tuple(ours)
    same = (our for our in known if foreign in _SAME.get(our, "").split())
    return next(itertools.chain(same, get_close_matches(foreign, known, n=1, cutoff=0.75)), None)


_ATTRIBUTES: Final[Mapping[str, str]] = {
    "epsilon": "get_epsilon to_epsilon eps compute_epsilon get_eps epsilon_spent",
    "reserve": "spend charge consume pay request add",
    "remaining": "left available balance get_remaining epsilon_left",
    "spent": "used total_spent",
    "create_budget": "add_budget new_budget make_budget",
    "budget": "get_budget open_budget",
    "ask": "submit evaluate compare check test",
    "score": "evaluate submit answer",
    "status": "state info summary",
    "guarantee": "privacy_guarantee get_guarantee",
    "params": "best_params best_params_",
    "value": "best_value best_estimator_ best_model",
    "predict_proba": "predict_probability predict_probabilities probabilities decision_function",
    "classes": "classes_ class_names",
    "best_params_": "best_params params_",
}
"""By our method, the names that others have for it."""
_ELSEWHERE: Final[Mapping[str, str]] = {
    "compose": "write compose(guarantee, guarantee) with yours",
    "check": "write budget.remaining() for what is left",
    "total": 'write ledger.budget("team").spent()',
    "trials": "the guarantee covers the winner alone, so the other runs stay secret. Write result.params",
}
"""Attributes of other libraries that are no attributes here, and what to write."""
_CALLS: Final[Mapping[str, str]] = {
    "epsilon": "epsilon(delta=1e-6)",
    "reserve": 'reserve(guarantee, label="first release")',
    "remaining": "remaining()",
    "spent": "spent()",
}
"""Methods with arguments that do."""


def attribute_advice(kind: type, name: str) -> str | None:
    """The advice for an attribute that objects of a class do not have, or None.

    >>> from dpselect.privacy import Guarantee
    >>> attribute_advice(Guarantee, "get_epsilon")
    "Guarantee has no attribute 'get_epsilon': write guarantee.epsilon(delta=1e-6)"
    """
    held = [each.name for each in fields(kind)] if is_dataclass(kind) else []
    known = [each for each in dict.fromkeys((*dir(kind), *held)) if not each.startswith("_")]
    same = (our for our in known if name in _ATTRIBUTES.get(our, "").split())
    found = next(itertools.chain(same, get_close_matches(name, known, n=1, cutoff=0.75)), None)
    if found is None and name in _ELSEWHERE:
        return f"{kind.__name__} has no attribute {name!r}: {_ELSEWHERE[name]}"
    if found is None:
        fitted = name.endswith("_") and hasattr(kind, "fit")
        return (
            f"{kind.__name__} has no attribute {name!r} yet: write {kind.__name__.lower()}.fit(X, y) first"
            if fitted
            else None
        )
    owner = kind.__name__.lower()
    return f"{kind.__name__} has no attribute {name!r}: write {owner}.{_CALLS.get(found, found)}"


def wrong_settings(what: str, takes: str, known: Iterable[str], given: Mapping[str, object]) -> str:
    """The error for settings that a thing, such as "base 'pure'", does not take, with advice for unknown names.

    >>> wrong_settings("base 'pure'", "epsilon=", ["epsilon"], {"eps": 1})
    "base 'pure' takes 'epsilon=', got 'eps': did you mean epsilon=? Write epsilon=1"
    """
    ours = tuple(known)
    advice = (advice_for(each, ours, name=what, given=given[each]) for each in sorted(given) if each not in ours)
    hint = next((f": {said}" for said in advice if said is not None), "")
    renamed = {meant(each, ours) or each: given[each] for each in given}
    if "|" not in takes:
        written = ", ".join(f"{each}={renamed.get(each) or EXAMPLES.get(each)}" for each in ours)
        hint += f"{'' if hint.endswith('?') else '.'} Write {written}"
    return f"{what} takes {takes!r}, got {', '.join(map(repr, sorted(given))) or 'none'}{hint}"


def foreign_names_of(ours: str) -> Iterator[str]:
    """The names that others have for this argument."""
    yield from _SAME.get(ours, "").split()
    yield from _OTHERWISE.get(ours, {})
