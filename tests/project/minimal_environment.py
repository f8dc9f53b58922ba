"""Without any optional extra: no matter what needs one says which, and how to install it. Everything else imports.

    python tests/project/minimal_environment.py

Run by the interpreter of an environment that has dpselect and its plain dependencies only; where an extra's package is
installed after all, that is an error, for nothing would be tested.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import dpselect
from dpselect.errors import MissingExtraError

# what each extra brings; "polars", "jax", "ibis", "spark" have no entry below: their objects come from the caller
PACKAGES = (
    *(
        "starlette",
        "uvicorn",
        "pyarrow",
        "openpyxl",
        "psycopg",
        "duckdb",
        "polars",
        "onnx",
        "optuna",
        "yaml",
        "torch",
        "opacus",
        "transformers",
        "lightning",
        "jax_privacy",
        "dask",
        "ray",
        "ibis",
        "pyspark",
    ),
    *("diffprivlib", "starlette", "uvicorn", "mcp", "pytest"),
)
NEEDS_EXTRA = {
    "dpselect.integrations.optuna.wrapper": "optuna",
    "dpselect.integrations.optuna.trial": "optuna",
    "dpselect.integrations.optuna.pruner": "optuna",
    "dpselect.integrations.opacus.accountant": "torch",
    "dpselect.integrations.opacus.checkpoints": "torch",
    "dpselect.integrations.opacus.clipping": "torch",
    "dpselect.integrations.opacus.engine": "torch",
    "dpselect.integrations.opacus.fixed_draws": "torch",
    "dpselect.integrations.opacus.kept_state": "torch",
    "dpselect.integrations.opacus.synthetic_rows": "torch",
    "dpselect.integrations.opacus.probe": "torch",
    "dpselect.integrations.opacus.looks": "torch",
    "dpselect.integrations.opacus.processes": "torch",
    "dpselect.integrations.opacus.row_batches": "torch",
    "dpselect.integrations.opacus.row_gradients": "torch",
    "dpselect.integrations.opacus.table_network": "torch",
    "dpselect.integrations.opacus.training": "torch",
    "dpselect.ordered.order_statistics.distribution_plot": "plot",
    "dpselect.integrations.transformers.token_rows": "torch",
    "dpselect.integrations.transformers.fine_tuning": "torch",
    "dpselect.integrations.lightning.training": "torch",
    "dpselect.report.plots": "plot",
    "dpselect.report.trade_off": "plot",
    "dpselect.holdout.server.app": "server",
    "dpselect.holdout.server.connections": "server",
    "dpselect.integrations.gates.pytest_plugin": "test",
}


def open_parquet_column() -> object:
    """A Parquet column."""
    from dpselect.ordered import open_column

    with open_column("rows.parquet", "x") as column:
        return column


def open_workbook() -> object:
    """A workbook of Excel."""
    from dpselect.tables.table import open_table

    return open_table("rows.xlsx")


def open_zstandard() -> object:
    """A table packed by Zstandard."""
    from dpselect.tables.table import open_table

    return open_table("rows.csv.zst")


def open_duckdb() -> object:
    """A table of DuckDB."""
    from dpselect.ordered import open_column

    with open_column("duckdb:///rows.db", "x", table="rows") as column:
        return column


def open_postgres() -> object:
    """A ledger on PostgreSQL."""
    from dpselect.ledger import Ledger

    return Ledger.open("postgresql://no one@localhost/nothing")


def gate_as_a_tool() -> object:
    """A gate for agents."""
    from dpselect.holdout import Gate
    from dpselect.integrations.gates import gate_server

    os.environ["XDG_STATE_HOME"] = os.getcwd()
    Gate.create("my.gate", dict.fromkeys(range(20), 0))
    return gate_server("my.gate", dict)


def serve_gates() -> object:
    """A server of holdouts and gates."""
    from dpselect.holdout.server import serve

    return serve([], submitters="submitters.db")


def read_yaml() -> object:
    """A file of settings."""
    from dpselect.decoding.yaml_text import yaml_of

    return yaml_of(b"a: 1", "the file")


def on_cluster(backend: str) -> Callable[[], object]:
    """A search on Dask or Ray."""

    def run() -> object:
        from dpselect.privacy import pure_dp
        from dpselect.repetitions import Fixed
        from dpselect.tuning import JoblibExecutor, Space, Uniform, tune

        return tune(
            lambda params, random: (params["x"], params["x"]),
            space=Space({"x": Uniform(0.0, 1.0)}),
            base=pure_dp(epsilon=1.0),
            repetitions=Fixed(count=2),
            executor=JoblibExecutor(backend=backend, workers=2, address="tcp://127.0.0.1:1"),
        )

    return run


def read_state() -> object:
    """An accountant's state saved by torch."""
    from dpselect.integrations.opacus.state import _load_weights

    return _load_weights("state.pt")


def write_onnx() -> object:
    """A model for ONNX runtimes."""
    from dpselect.study.to_onnx.graph import Graph

    return Graph().to_bytes("", {})


def diffprivlib_model() -> object:
    """A diffprivlib accountant."""
    from dpselect.integrations.sklearn.diffprivlib_models import fresh_accountant

    return fresh_accountant()


USES: dict[str, tuple[str, Callable[[], object]]] = {
    "reading a Parquet column": ("parquet", open_parquet_column),
    "reading a workbook": ("excel", open_workbook),
    "reading what Zstandard packed": ("parquet", open_zstandard),
    "reading a DuckDB table": ("duckdb", open_duckdb),
    "a ledger on PostgreSQL": ("postgres", open_postgres),
    "an executor on Dask": ("dask", on_cluster("dask")),
    "an executor on Ray": ("ray", on_cluster("ray")),
    "reading YAML": ("sweeps", read_yaml),
    "reading a torch file": ("torch", read_state),
    "a server of gates": ("server", serve_gates),
    "a gate as a tool": ("mcp", gate_as_a_tool),
    "an ONNX file": ("onnx", write_onnx),
    "a diffprivlib model": ("diffprivlib", diffprivlib_model),
}


def check(what: str, extra: str, use: Callable[[], object]) -> str | None:
    """What is wrong with the error that the use raises, if anything."""
    try:
        use()
    except MissingExtraError as error:
        wanted = f'pip install "dpselect[{extra}]"'
        return None if wanted in str(error) else f"{what}: the message lacks {wanted}: {error}"
    except Exception as error:
        return f"{what}: {type(error).__name__} in place of MissingExtraError: {error}"
    return f"{what}: no error"


def main() -> None:
    """Every module, then every use."""
    present = [name for name in PACKAGES if importlib.util.find_spec(name)]
    assert not present, f"not a minimal environment: {present}"
    found = []
    for module in pkgutil.walk_packages(dpselect.__path__, "dpselect."):
        extra = NEEDS_EXTRA.get(module.name)
        if extra:
            found.append(check(module.name, extra, lambda name=module.name: importlib.import_module(name)))
        else:
            try:
                importlib.import_module(module.name)
            except Exception as error:
                found.append(f"{module.name}: {type(error).__name__}: {error}")
    with tempfile.TemporaryDirectory() as name:
        for file in ("rows.parquet", "rows.xlsx", "rows.csv.zst"):
            Path(name, file).touch()
        os.chdir(name)
        found += [check(what, extra, use) for what, (extra, use) in USES.items()]
    wrong = [line for line in found if line]
    assert not wrong, "\n".join(wrong)
    print(f"minimal environment: {len(USES)} uses and {len(NEEDS_EXTRA)} modules name their extra")


if __name__ == "__main__":
    main()
