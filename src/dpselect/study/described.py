"""What a release says of its data and of its purpose: facts that the study declares, or that were paid for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpselect.study.columns import Column
from dpselect.study.schema import Study
from dpselect.study.sources import source_name

__all__ = ["described"]


def described(study: Study, columns: Mapping[str, Column]) -> dict[str, Any]:
    """Parts of release.json, by their keys; JSON-able. `columns` are those of the model, in its order.

    Of a source its name alone stands there: a folder, a host or a user is nobody's business.
    """
    data = study.data
    return {
        "card": study.card.model_dump(),
        "data": {
            "source": source_name(data.source, data.table),
            "form": {key: value for key, value in vars(data.form).items() if value is not None and key != "table"},
            "label": data.label,
            "classes": None if data.classes is None else list(data.classes),
            "label_bounds": None if data.label_bounds is None else list(data.label_bounds),
            "nominal_rows": study.privacy.nominal_rows,
            "columns": {
                name: column.model_dump(mode="json", exclude_defaults=True) for name, column in columns.items()
            },
        },
    }
