"""Small records in the layouts of the tools: each function writes one below a folder and returns what to read."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing

RUNS = (
    {"noise_multiplier": 1.0, "sampling_rate": 0.01, "steps": 100, "lr": 0.1},
    {"noise_multiplier": 2.0, "sampling_rate": 0.01, "steps": 100, "lr": 0.2},
    {"noise_multiplier": 2.0, "sampling_rate": 0.01, "steps": 100, "lr": 0.4},
)
STATUSES = ("finished", "failed", "finished")


def wrote(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def csv_file(folder, runs=RUNS, name="sweep.csv", delimiter=","):
    names = list(dict.fromkeys(key for run in runs for key in run))
    lines = [names, *([str(run.get(key, "")) for key in names] for run in runs)]
    return wrote(folder / name, "".join(delimiter.join(line) + "\n" for line in lines))


def mlflow_store(folder, runs=RUNS, *, statuses=(3, 4, 3), tags=({}, {}, {}), experiment="1", name="digits: sweep"):
    root = folder / "mlruns"
    wrote(root / experiment / "meta.yaml", f"experiment_id: '{experiment}'\nlifecycle_stage: active\nname: '{name}'\n")
    for at, (run, status, tag) in enumerate(zip(runs, statuses, tags, strict=True)):
        place = root / experiment / f"{at:032d}"
        wrote(place / "meta.yaml", f"run_id: {at:032d}\nrun_name: run-{at}\nstatus: {status}\ntags: []\nuser_id: x\n")
        for key, value in run.items():
            wrote(place / "params" / key, str(value))
        for key, value in {"mlflow.runName": f"run-{at}", **tag}.items():
            wrote(place / "tags" / key, value)
    return root


def mlflow_database(folder, runs=RUNS, *, statuses=("FINISHED", "FAILED", "FINISHED")):
    path = folder / "mlflow.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE experiments (experiment_id INTEGER, name TEXT)")
        made.execute("CREATE TABLE runs (run_uuid TEXT, status TEXT, experiment_id INTEGER)")
        made.execute("CREATE TABLE params (key TEXT, value TEXT, run_uuid TEXT)")
        made.execute("CREATE TABLE tags (key TEXT, value TEXT, run_uuid TEXT)")
        made.execute("INSERT INTO experiments VALUES (0, 'Default'), (1, 'digits')")
        for at, (run, status) in enumerate(zip(runs, statuses, strict=True)):
            made.execute("INSERT INTO runs VALUES (?, ?, 1)", (f"r{at}", status))
            made.executemany("INSERT INTO params VALUES (?, ?, ?)", [(k, str(v), f"r{at}") for k, v in run.items()])
    return path


def field(number, content):
    """A field of Protocol Buffers: an integer, or bytes."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value):
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def event_log(records):
    """A log of these records, in blocks of 32 KiB."""
    content = bytearray(b":W&B\xbe\xe1\x00")
    for record in records:
        rest, first = record, True
        while rest or first:
            left = 32768 - len(content) % 32768
            if left < 7:
                content += bytes(left)
                left = 32768
            part, rest = rest[: left - 7], rest[left - 7 :]
            kind = {(True, True): 1, (True, False): 2, (False, False): 3, (False, True): 4}[first, not rest]
            content += zlib.crc32(bytes([kind]) + part).to_bytes(4, "little")
            content += len(part).to_bytes(2, "little") + bytes([kind]) + part
            first = False
    return bytes(content)


def config_record(values):
    return b"".join(field(1, field(1, k.encode()) + field(16, json.dumps(v).encode())) for k, v in values.items())


def wandb_offline(folder, runs=RUNS, *, codes=(0, 1, None), updates=({}, {}, {})):
    for at, (run, code, update) in enumerate(zip(runs, codes, updates, strict=True)):
        place = folder / "wandb" / f"offline-run-20260101_00000{at}-abc{at}"
        place.mkdir(parents=True)
        records = [field(17, field(1, b"abc") + field(4, config_record({"_wandb": {}, **run})))]
        records += [field(2, bytes(40_000))]
        records += [field(5, config_record(update))] if update else []
        records += [] if code is None else [field(18, field(1, code) if code else b"")]
        (place / f"run-abc{at}.wandb").write_bytes(event_log(records))
    return folder / "wandb"


def wandb_synced(folder, runs=RUNS):
    for at, run in enumerate(runs):
        lines = "".join(f"{key}:\n    desc: null\n    value: {value}\n" for key, value in run.items())
        wrote(
            folder / "wandb" / f"run-2026-abc{at}" / "files" / "config.yaml",
            f"_wandb:\n    value:\n        t: 1\n{lines}",
        )
    return folder / "wandb"


def ray_experiment(
    folder, runs=RUNS, *, plain=True, statuses=("TERMINATED", "ERROR", "TERMINATED"), failures=(0, 1, 0)
):
    root, states = folder / "exp", []
    for at, (run, status, failed) in enumerate(zip(runs, statuses, failures, strict=True)):
        wrote(root / f"trial_{at}" / "params.json", json.dumps(run))
        results = [{"training_iteration": i, "config": run, "acc": float("nan")} for i in (1, 2)]
        wrote(root / f"trial_{at}" / "result.json", "".join(json.dumps(each) + "\n" for each in results))
        state = {"trial_id": str(at), "config": run, "status": status, "relative_logdir": f"trial_{at}"}
        states.append([json.dumps(state), json.dumps({"num_failures": failed})])
    wrote(root / "experiment_state-2026.json", json.dumps({"trial_data": states}))
    wrote(root / ("basic-variant-state-2026.json" if plain else "searcher-state-2026.pkl"), "{}")
    return root


def hydra_multirun(folder, runs=RUNS, *, sweeper="hydra._internal.core_plugins.basic_sweeper.BasicSweeper"):
    root = folder / "multirun" / "2026-01-01" / "00-00-00"
    wrote(root / "multirun.yaml", "hydra: {}\n")
    for at, run in enumerate(runs):
        settings = "".join(f"  {key}: {value}\n" for key, value in run.items())
        wrote(root / str(at) / ".hydra" / "config.yaml", f"dp:\n{settings}layers:\n- 1\n- 2\nname: 'a: b # c'\n")
        wrote(root / str(at) / ".hydra" / "hydra.yaml", f"hydra:\n  sweeper:\n    _target_: {sweeper}\n")
        wrote(root / str(at) / ".hydra" / "overrides.yaml", f"- dp.lr={run.get('lr')}\n")
    return folder / "multirun"


def keras_project(folder, runs=RUNS, *, statuses=("COMPLETED", "FAILED", "COMPLETED"), times=(1, 3, 1)):
    root = folder / "tuning" / "project"
    for at, (run, status) in enumerate(zip(runs, statuses, strict=True)):
        trial = {"trial_id": str(at), "hyperparameters": {"space": [], "values": run}, "status": status}
        wrote(root / f"trial_{at}" / "trial.json", json.dumps(trial))
    numbers = [str(at) for at in range(len(runs))]
    oracle = {"start_order": numbers, "run_times": dict(zip(numbers, times, strict=True))}
    wrote(root / "oracle.json", json.dumps(oracle))
    return folder / "tuning"
