"""Study files: each changes one piece of a study that is valid."""

from __future__ import annotations

STUDY = """\
name = "people"

[data]
source = "people.csv"
label = "job"
classes = ["cook", "nurse"]

[data.columns.age]
bounds = [0, 120]

[privacy]
epsilon = 3.0
delta = 1e-5
nominal_rows = 200

[learner]
name = "dp-sgd"
sampling_rate = 0.2
steps = 20

[space]
learning_rate = { distribution = "log_uniform", low = 0.1, high = 1.0 }

[repetitions]
distribution = "harmonic"
limit = 3

[output]
folder = "out"
"""

STUDIES = [
    # (the piece of the study, what was written in its place)
    ("epsilon = 3.0", "eps = 3.0"),
    ("epsilon = 3.0", "epsilon = -3"),
    ("epsilon = 3.0", ""),
    ("epsilon = 3.0", "target_epsilon = 3.0"),
    ("epsilon = 3.0\ndelta = 1e-5", "epsilon = 1e-5\ndelta = 3.0"),
    ("delta = 1e-5", ""),
    ("delta = 1e-5", "delta = 1"),
    ("nominal_rows = 200", ""),
    ("nominal_rows = 200", "n_rows = 200"),
    ("nominal_rows = 200", "nominal_rows = 200\nadjacency = 'add-remove'", "adjacency = 'add-remove'"),
    ("nominal_rows = 200", "nominal_rows = 200\nledger = 'budget.db'", "ledger = 'budget.db'"),
    ("nominal_rows = 200", "nominal_rows = 200\nbudget = 'team'", "budget = 'team'"),
    ("nominal_rows = 200", "nominal_rows = 200\nledger = 'budget.db'\nbudget = 'tema'", "budget = 'tema'"),
    ("nominal_rows = 200", "nominal_rows = 200\nnoise_multiplier = 4.0"),
    ('source = "people.csv"', 'source = "poeple.csv"'),
    ('source = "people.csv"', 'path = "people.csv"'),
    ('source = "people.csv"', 'source = "people.txt"'),
    ('label = "job"', 'label = "jobb"'),
    ('label = "job"', 'target = "job"'),
    ('classes = ["cook", "nurse"]', ""),
    ('classes = ["cook", "nurse"]', "classes = 2"),
    ('classes = ["cook", "nurse"]', 'classes = "cook, nurse"'),
    ('classes = ["cook", "nurse"]', 'classes = ["cook", "nurse"]\ntask = "binary"', 'task = "binary"'),
    ("[data.columns.age]\nbounds = [0, 120]", ""),
    ("bounds = [0, 120]", "bounds = [120, 0]"),
    ("bounds = [0, 120]", "bounds = 120"),
    ("bounds = [0, 120]", "range = [0, 120]"),
    ("bounds = [0, 120]", "lower = 0\nupper = 120"),
    ("bounds = [0, 120]", "bounds = [0, 120]\ntype = 'number'", "type = 'number'"),
    ("bounds = [0, 120]", "bounds = [0, 120]\nkind = 'int'", "kind = 'int'"),
    ("[data.columns.age]", "[data.columns.agee]"),
    ("[data.columns.age]", "[columns.age]"),
    ('name = "dp-sgd"', 'name = "dpsgd"'),
    ('name = "dp-sgd"', 'name = "logistic-regression"'),
    ("steps = 20", "epochs = 5"),
    ("steps = 20", "steps = 20\nlr = 0.1", "lr = 0.1"),
    ("sampling_rate = 0.2", "batch_size = 32"),
    ("sampling_rate = 0.2", "sampling_rate = 20"),
    ("sampling_rate = 0.2", "sampling_rate = 0.2\nmax_grad_norm = 1.0", "max_grad_norm = 1.0"),
    ('distribution = "log_uniform"', 'distribution = "loguniform"'),
    (
        '{ distribution = "log_uniform", low = 0.1, high = 1.0 }',
        '{ distribution = "log_uniform", min = 0.1, max = 1.0 }',
    ),
    (
        '{ distribution = "log_uniform", low = 0.1, high = 1.0 }',
        '{ distribution = "log_uniform", low = 1.0, high = 0.1 }',
    ),
    ('{ distribution = "log_uniform", low = 0.1, high = 1.0 }', "[0.1, 1.0]"),
    ('{ distribution = "log_uniform", low = 0.1, high = 1.0 }', "0.1"),
    ("learning_rate = {", "lr = {"),
    ("limit = 3", "n_trials = 3"),
    ("limit = 3", "mean = 3"),
    ('distribution = "harmonic"', 'distribution = "harmonc"'),
    ('[repetitions]\ndistribution = "harmonic"\nlimit = 3', "[repetitions]\nn = 10"),
    ("[learner]", "[model]"),
    ("[privacy]", "[budget]"),
    ('folder = "out"', ""),
    ('folder = "out"', 'path = "out"'),
    ('[output]\nfolder = "out"', ""),
    ('[output]\nfolder = "out"', '[output]\nfolder = "out"\n[validation]\nmetric = "acc"', 'metric = "acc"'),
    ('[output]\nfolder = "out"', '[output]\nfolder = "out"\n[validation]\nfraction = 20', "fraction = 20"),
    ('[output]\nfolder = "out"', '[output]\nfolder = "out"\n[search]\ndesign = "grid"', 'design = "grid"'),
    ('[output]\nfolder = "out"', '[output]\nfolder = "out"\n[runs]\nn_jobs = 4', "n_jobs = 4"),
    (
        '[output]\nfolder = "out"',
        '[output]\nfolder = "out"\n[runs]\nexecutor = "joblib"\nworkers = "4"',
        'executor = "joblib"',
    ),
    ('name = "people"', "name = people"),
    ('name = "people"', 'name = "people"\nseed = 42', "seed = 42"),
    ('name = "people"', 'name: "people"'),
]
