"""The smallest study, and copies with one key changed."""

import copy

STUDY = {
    "name": "toy",
    "data": {"source": "sklearn:iris", "classes": [0, 1, 2], "bounds": [0, 8]},
    "privacy": {"epsilon": 3.0, "delta": 1e-5, "nominal_rows": 150},
    "learner": {"name": "dp-sgd", "sampling_rate": 0.2, "steps": 20},
    "space": {"learning_rate": {"distribution": "log_uniform", "low": 0.1, "high": 1.0}},
    "repetitions": {"distribution": "harmonic", "limit": 3},
    "output": {"folder": "out"},
}


def changed(path, value):
    document = copy.deepcopy(STUDY)
    *tables, key = path.split(".")
    place = document
    for table in tables:
        place = place.setdefault(table, {})
    if value is None:
        place.pop(key)
    else:
        place[key] = value
    return document
