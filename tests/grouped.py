"""Settings of a search by their own names, put into the values that `tune` takes them in."""

from dataclasses import fields

from dpselect.testing import executor_contract
from dpselect.tuning import Execution, SearchStore

STORE = {field.name for field in fields(SearchStore)} - {"path"}
EXECUTION = {field.name for field in fields(Execution)}


def grouped(**options):
    """`resume=True, store=path` as `store=SearchStore(path=path, resume=True)`, and so on."""
    store = {name: options.pop(name) for name in STORE & set(options)}
    execution = {name: options.pop(name) for name in EXECUTION & set(options)}
    if store:
        options["store"] = SearchStore(path=options.pop("store", None), **store)
    if execution:
        options["execution"] = Execution(**execution)
    return options


def tuned(*arguments, **options):
    """The search of the contract of executors."""
    return executor_contract.tuned(*arguments, **grouped(**options))
