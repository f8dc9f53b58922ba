"""What becomes of an exception of the caller's code, for every public parameter that takes such code.

`tests/project/test_public_callbacks.py` finds the parameters by their annotations. Each is in exactly one list here.
"""

from __future__ import annotations

CONFINED: set[str] = {
    "learners.GatedRelease.prepared:error",
    "learners.GatedRelease.prepared:train",
    "mechanisms.ReleaseUntilAbove.prepared:query",
    "selection.select_above:candidate",
    "selection.select_best:candidate",
    "selection.SelectHyperparameters.prepared:correct",
    "selection.SelectHyperparameters.prepared:train",
    "selection.SelectIncreasing.prepared:candidates",
    "selection.Selector.prepared:candidate",
}
"""The code sees the data inside of a private run: nothing of what it raises, prints or warns leaves."""

PASSES: set[str] = {
    "ordered.slices.ReorderSliceCompute.compute:mechanism",
    "ordered.interior_points.maximize_quasi_concave:score",
    "privacy.paid:run",
}
"""The code sees the data, and its exception continues as the docstring says; what was reserved stays charged."""

PUBLIC: set[str] = {
    "accounting.calibrate:make",
    "accounting.iterative:steps",
    "accounting.plan:base",
    "accounting.plan_subset:base",
    "adaptive.plan_concentrated:subsample_for",
    "learners.EarlyStopping.guarantee:steps",
    "mechanisms.GradualRelease.until:stop",
}
"""The code sees public parameters, or what was released before: its exception continues, and tells nothing."""

_SESSION = "a session: tests/randomness/test_session.py raises everything in it"
_RUN = "a search or an audit: tests/privacy/test_boundary.py, tests/audit/test_one_run.py and tuners' tests raise in it"
_KEPT = "a constructor that keeps the code; what calls it stands in a list of its own"
_LOOK = "progress, rehearsal on synthetic rows, or what is called with a release: sees nothing private"
_FRAME = "code of this library, or an adapter to another"

ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(
        (
            "adaptive.AdaptiveAnalysis.choose:candidates",
            "adaptive.AdaptiveAnalysis.estimate:estimator",
            "adaptive.AdaptiveAnalysis.verify:estimator",
            "adaptive.AdaptiveAnalysis.verify_or_correct:estimator",
            "adaptive.AdaptiveMeans.mean:function",
            "adaptive.EffectiveRounds.estimate:estimator",
            "adaptive.Verification.check:values",
            "holdout.Gate.ask:incumbent",
            "holdout.Gate.ask:outcomes",
            "holdout.SavedAnalysis.choose:candidates",
            "holdout.SavedAnalysis.estimate:estimator",
            "holdout.SavedAnalysis.verify:estimator",
            "holdout.SavedAnalysis.verify_or_correct:estimator",
            "learners.EarlyStopping:rule",
            "learners.EarlyStopping:score",
            "mechanisms.GradualRelease:level",
            "ordered.slices.ReorderSliceCompute.slice:order",
            "ordered.slices.ReorderSliceCompute.slice_and_compute:mechanism",
            "ordered.slices.ReorderSliceCompute.slice_and_compute:order",
            "selection.SampledSparseVector.above:candidate",
        ),
        _SESSION,
    ),
    **dict.fromkeys(
        (
            "audit.OneRunAudit:score",
            "audit.OneRunAudit:train",
            "audit.Subject:draw",
            "audit.function_subject:function",
            "integrations.optuna.tune:objective",
            "integrations.sklearn.PrivateSearchCV:base",
            "integrations.sklearn.RowScore:function",
            "tuning.SharedRelease:objective",
            "tuning.tune:base",
            "tuning.tune:objective",
            "tuning.PortfolioDesign:score",
            "tuning.PortfolioDesign:weights",
            "tuning.TwoStageDesign:last",
        ),
        _RUN,
    ),
    **dict.fromkeys(
        (
            "mechanisms.ScoreChunks:read",
            "ordered.slices.EachRow:function",
            "ordered.slices.Kept:test",
            "ordered.slices.Ordered:key",
            "ordered.interior_points.RisingAndFalling:falling",
            "ordered.interior_points.RisingAndFalling:rising",
            "ordered.slices.Steps:maps",
            "privacy.OutputGuarantee:cell",
            "privacy.OutputGuarantee:epsilons",
            "privacy.OutputGuarantee:used",
            "selection.PrivateCandidate:run",
            "selection.SelectAcceptable:acceptable",
            "selection.SelectWithoutThreshold:search",
            "selection.private_mixture:candidates",
            "selection.uniform_mixture:candidates",
            "selection.weighted_mixture:candidates",
            "tuning.AdaptiveProposal:proposer",
            "tuning.TwoStageDesign:price",
        ),
        _KEPT,
    ),
    **dict.fromkeys(
        (
            "audit.audit:progress",
            "integrations.optuna.rehearse:objective",
            "integrations.optuna.tune:rehearse",
            "integrations.optuna.tune:release",
            "integrations.sklearn.PrivateSearchCV:release",
            "ordered.open_column:progress",
            "privacy.Release.processed:function",
            "selection.select_above:rehearse",
            "selection.Selector.prepared:rehearse",
            "selection.select_best:rehearse",
            "selection.SelectIncreasing.prepared:rehearse",
            "study.load_model:module",
            "study.run_study:operator_progress",
            "study.run_study:progress",
            "study.run_study:stage",
            "tuning.Execution:operator_progress",
            "tuning.Execution:progress",
            "tuning.tune:rehearse",
            "tuning.tune:release",
        ),
        _LOOK,
    ),
    **dict.fromkeys(
        (
            "mechanisms.Cascade.prepared:attempts",
            "mechanisms.ProposeTestRelease.prepared:answer",
            "mechanisms.ProposeTestRelease.prepared:distance",
            "mechanisms.SparseRelease.prepared:answer",
        ),
        "passes on what the code raises when it is run: tests/project/test_paid_calls.py",
    ),
    **dict.fromkeys(
        (
            "integrations.optuna.PrivatePruner:noise",
            "mechanisms.Cascade:stages",
            "ordered.GroupedQuantiles:quantiles",
            "privacy.Guarantee:loss",
            "privacy.Guarantee:renyi_curve",
            "privacy.paid:form",
        ),
        _FRAME,
    ),
}
"""Parameters whose exceptions are tested elsewhere, or that see nothing private, each with the reason."""

ROOMS_OF_FUNCTIONS = ("numerics.",)
"""Rooms that hold searches over functions of this library, with no data in them."""
