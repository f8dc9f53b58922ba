"""For `tests/project/test_public_contract.py`: calls of names without an example, and why the rest is not called."""

from __future__ import annotations

_PURE = "pure_dp(epsilon=0.5)"
_SWAP = "pure_dp(epsilon=0.4, adjacency='replace_one')"
_LAW = "Geometric.with_mean(mean=4)"

SAMPLES: dict[str, str] = {
    "adaptive.EffectiveRounds": (
        "EffectiveRounds(np.arange(30000) % 2.0, rounds=2, queries=15, subsample_size=1, failure_probability=0.9)"
    ),
    "adaptive.MultiplicativeWeights": (
        "MultiplicativeWeights(np.arange(80000) % 2, universe=2, queries=3, grid_size=2, failure_probability=0.9)"
    ),
    "adaptive.explicit_grid": "explicit_grid([1.0, 2.0, 4.0])",
    "adaptive.integer_grid": "integer_grid(0, 7)",
    "audit.audit_guesses": f"audit_guesses([1, 0, 1], [True, True, False], {_PURE})",
    "integrations.sklearn.PublicTransformer.fit": (
        "from sklearn.preprocessing import StandardScaler\n"
        "PublicTransformer(StandardScaler().fit([[1.0], [2.0]])).fit([[1.0]])"
    ),
    "learners.EarlyStopping": (
        "EarlyStopping(stops=[10, 40], delta=1e-5, score=PublicValidation(np.eye(2), np.arange(2)), rule=Reached(0.9))"
    ),
    "learners.PrivateValidation": "PrivateValidation(np.eye(2), np.arange(2), nominal_rows=2, epsilon=0.5)",
    "learners.PublicValidation": "PublicValidation(np.eye(2), np.arange(2))",
    "learners.GatedRelease.prepared": (
        "gate = GatedRelease(training=pure_dp(epsilon=1.0), max_error=0.1, test_epsilon=0.1, test_shift=0.001)\n"
        "gate.prepared(lambda random: 'model', lambda model: 0.9)"
    ),
    "mechanisms.Cascade.prepared": (
        "stage = ProposeTestRelease(epsilon_test=0.5, epsilon_answer=0.5, delta=0.01)\n"
        "Cascade([stage]).prepared([(10_000, lambda random: 1)])"
    ),
    "mechanisms.ChoosingMechanism.prepared": (
        "ChoosingMechanism(growth=1, epsilon=1.0, delta=1e-6).prepared([0.0, 9.0])"
    ),
    "mechanisms.GeneralisedExponentialMechanism.prepared": (
        "GeneralisedExponentialMechanism(sensitivities=[1.0, 2.0], epsilon=1).prepared([0.0, 9.0])"
    ),
    "mechanisms.InterquantileRange.prepared": (
        "spread = InterquantileRange(granularity=0.5, epsilon_test=0.5, epsilon_answer=0.5, delta=1e-6)\n"
        "spread.prepared([1.0, 2.0, 9.0])"
    ),
    "mechanisms.LargeMarginMechanism.prepared": (
        "LargeMarginMechanism(candidates=2, sensitivity=1.0, epsilon=1.0, delta=1e-6).prepared([0.0, 9.0])"
    ),
    "mechanisms.ReleaseUntilAbove.prepared": (
        "levels = LaplaceReduction(epsilons=[0.5, 1.0], sensitivity=1)\n"
        "until = ReleaseUntilAbove(reduction=levels, threshold=3, epsilon_threshold=0.5, epsilon_queries=0.5)\n"
        "until.prepared(5, float)"
    ),
    "mechanisms.ProposeTestRelease.prepared": (
        "stage = ProposeTestRelease(epsilon_test=0.5, epsilon_answer=0.5, delta=0.01)\n"
        "stage.prepared(10_000, lambda random: 1)"
    ),
    "mechanisms.SmoothSensitivityMechanism.prepared": (
        "smooth = SmoothSensitivityMechanism(candidates=2, smoothness=0.01, base_epsilon=0.5, base_delta=1e-6)\n"
        "smooth.prepared([0.0, 9.0], [1.0, 1.0])"
    ),
    "mechanisms.SparseRelease.prepared": (
        "search = SparseRelease(epsilon_threshold=0.5, epsilon_queries=0.5, epsilon_release=0.5, max_positives=2)\n"
        "search.prepared([1.0, 9.0], threshold=5.0)"
    ),
    "mechanisms.TrimmedMean.prepared": (
        "mean = TrimmedMean(width=2.0, granularity=0.5, epsilon_test=0.5, epsilon_answer=0.5, delta=1e-6)\n"
        "mean.prepared([1.0, 2.0, 9.0])"
    ),
    "mechanisms.GeneralisedExponentialMechanism": (
        "GeneralisedExponentialMechanism(sensitivities=[1.0, 2.0], epsilon=1)"
    ),
    "mechanisms.LargeMarginMechanism": ("LargeMarginMechanism(candidates=3, sensitivity=1.0, epsilon=1.0, delta=1e-6)"),
    "mechanisms.SmoothSensitivityMechanism": (
        "SmoothSensitivityMechanism(candidates=3, smoothness=0.01, base_epsilon=0.5, base_delta=1e-6)"
    ),
    "mechanisms.discrete_gaussian": "discrete_gaussian(4.0)",
    "ordered.slices.Ordered": "Ordered(column=0)",
    "privacy.compose": f"compose({_PURE}, {_PURE})",
    "privacy.dp_sgd": "dp_sgd(noise_multiplier=2.0, sampling_rate=0.01, steps=10)",
    "privacy.from_profile": "from_profile([0.5, 1.0], [1e-2, 1e-3])",
    "privacy.renyi_dp": "renyi_dp(orders=[2.0, 4.0], epsilons=[0.1, 0.2])",
    "privacy.worst_of": f"worst_of({_PURE}, {_PURE})",
    "privacy.zcdp": "zcdp(rho=0.01)",
    "randomness.resolve": "resolve(None)",
    "randomness.system_source": "system_source()",
    "repetitions.Geometric": "Geometric(gamma=0.25)",
    "selection.SelectAbove": f"SelectAbove(threshold=0.5, stop_probability=0.5, base={_PURE})",
    "selection.SelectBest": f"SelectBest(repetitions={_LAW}, base={_PURE})",
    "selection.SelectHyperparameters.prepared": (
        f"select = SelectHyperparameters(candidates=2, repetitions={_LAW}, training={_PURE}, validation_epsilon=0.5)\n"
        "select.prepared(lambda place, random: place, lambda model: model)"
    ),
    "selection.SelectIncreasing.prepared": (
        f"select = SelectIncreasing(levels=[{_PURE}], repetitions={_LAW})\n"
        "select.prepared([lambda random: (1.0, None)], threshold=0.5)"
    ),
    "selection.Selector.prepared": (
        f"select = SelectWithDummies(threshold=0.5, runs=5, gamma=0.2, base={_PURE})\n"
        "select.prepared(lambda random: (1.0, None))"
    ),
    "tuning.GaussianProcessProposer": "GaussianProcessProposer()",
    "tuning.IntegerUniform": "IntegerUniform(1, 9)",
    "tuning.Uniform": "Uniform(0.0, 1.0)",
}

_RECORD = "a record that functions of this library fill with what they have checked"
_HANDLE = "made by a class method; its arguments are not a user's"
_FILES = "works on files, and has tests of its own for them"
_FOREIGN = "takes an object of another library"
_SUBJECT = "describes an audit; wrong ones fail when the audit runs"
_ESTIMATOR = "a scikit-learn estimator: held to scikit-learn's own checks"

EXEMPT: dict[str, str] = {
    **dict.fromkeys(
        (
            "privacy.Guarantee",
            "privacy.Release",
            "tuning.TuneResult",
        ),
        _RECORD,
    ),
    **dict.fromkeys(
        (
            "adaptive.Verification",
            "holdout.Gate",
            "holdout.Holdout",
            "mechanisms.Mechanism",
            "holdout.SavedAnalysis",
            "ledger.Budget",
            "ledger.Ledger",
            "mechanisms.GradualRelease",
            "randomness.RandomSource",
        ),
        _HANDLE,
    ),
    **dict.fromkeys(
        (
            "holdout.Gate.ask",
            "holdout.Gate.certificate",
            "holdout.Gate.create",
            "holdout.Gate.open",
            "holdout.Gate.retire",
            "holdout.Gate.status",
            "holdout.Holdout.create",
            "holdout.Holdout.open",
            "holdout.Holdout.score",
            "holdout.SavedAnalysis.create",
            "holdout.SavedAnalysis.open",
            "holdout.SavedAnalysis.estimate",
            "ledger.Ledger.open",
            "ledger.Ledger.create_budget",
            "ledger.Ledger.verify",
            "ordered.open_column",
            "study.Study",
            "study.check_study",
            "study.forecast_study",
            "study.export_model",
            "study.load_model",
            "study.load_study",
            "study.parse_study",
            "study.run_study",
            "tuning.tune",
            "integrations.optuna.tune",
        ),
        _FILES,
    ),
    **dict.fromkeys(
        (
            "integrations.optuna.IndependentSampler",
            "privacy.from_dp_event",
            "audit.label_scores",
            "integrations.optuna.rehearse",
            "integrations.optuna.IndependentTrial",
        ),
        _FOREIGN,
    ),
    **dict.fromkeys(("audit.FiniteSubject", "audit.Subject", "audit.command_subject", "audit.sampled"), _SUBJECT),
    **dict.fromkeys(
        ("ordered.slices.EachRow", "ordered.slices.Kept", "ordered.slices.Steps"),
        "holds functions of the caller as they are",
    ),
    **dict.fromkeys(("tuning.InlineExecutor", "tuning.ProcessExecutor", "tuning.JoblibExecutor"), "starts processes"),
    "selection.SelectWithoutThreshold.by_theorem": "asks for more runs than anyone can make, in its example too",
    "privacy.Adjacency": "an enumeration",
    **dict.fromkeys(
        ("accounting.search_bound", "ordered.column_source", "privacy.base_mechanism", "repetitions.repetition_law"),
        "a decorator: tests/test_registry.py",
    ),
    "repetitions.Repetitions.quantile": "the laws' own tests",
    "preprocessing.PublicMap": "an interface: its maps are tried",
    **dict.fromkeys(
        ("preprocessing.PublicMap.fit", "preprocessing.PublicMap.transform"),
        "tests/preprocessing/test_transformers.py, for every map",
    ),
}
"""Public names that are not called here, each with the reason."""

LONG = {"audit.audit", "audit.audit_outputs", "learners.DPSGDRegressor.fit"}
"""Names whose cases take a second, which the full tier runs."""
DEAR: set[str] = {
    "accounting.iterative",
    "accounting.plan",
    "accounting.plan_subset",
    "adaptive.AdaptiveAnalysis",
    "adaptive.AdaptiveAnalysis.estimate",
    "adaptive.AdaptiveMeans",
    "adaptive.AdaptiveMeans.mean",
    "adaptive.EffectiveRounds",
    "adaptive.MultiplicativeWeights",
    "adaptive.plan_analysis",
    "adaptive.plan_concentrated",
    "holdout.HoldoutRequest.plan",
    "integrations.sklearn.PrivateSearchCV.fit",
    "learners.DPSGDClassifier.fit",
    "learners.EarlyStopping.open",
    "ordered.slices.noise_pays_from",
    "selection.SampledSparseVector",
    "selection.SampledSparseVector.above",
    "selection.SelectWithoutThreshold",
    "selection.ThresholdSearch",
}
"""Tried in the slow tests only: a call takes long."""

DATA: set[str] = {
    "X",
    "X_test",
    "codes",
    "column",
    "data",
    "failing",
    "gap",
    "included",
    "labels",
    "log_odds",
    "passing",
    "predictions",
    "rows",
    "scores",
    "value",
    "values",
    "weights",
    "y",
    "y_test",
}
"""Parameters that hold what is private. All others are public."""

PUBLIC_HERE: dict[str, str] = {
    "repetitions.split_counts:weights": "public proportions",
    "repetitions.independent_counts:weights": "public proportions",
    "tuning.PortfolioDesign:weights": "how many a released model would have",
    "adaptive.plan_analysis:rows": "their number",
    "holdout.HoldoutRequest.plan:rows": "their number",
    "selection.weighted_mixture:weights": "public proportions",
    "selection.SelectIncreasing:weights": "public proportions",
    "selection.log_odds:passing": "a probability that the caller computed: a wrong one is his mistake, not a row's",
    "selection.log_odds:failing": "likewise",
}
"""Parameters with such a name that are public."""
