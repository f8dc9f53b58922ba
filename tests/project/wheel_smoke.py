"""What a user does first, with an installed wheel: run by the interpreter of an environment that has nothing else.

    python tests/project/wheel_smoke.py

Fails when dpselect comes from the source tree, when a file is missing from the wheel, or when one of the first steps of
the README does not work.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib import metadata, resources
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]


def command(*arguments: str, folder: Path) -> str:
    """Run the installed `dpselect`."""
    program = Path(sys.executable).parent / "dpselect"
    environment = {"XDG_STATE_HOME": str(folder), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    done = subprocess.run([program, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main() -> None:
    """All steps, in a folder that is none of the sources."""
    import dpselect
    from dpselect.accounting import best_of
    from dpselect.privacy import dp_sgd
    from dpselect.repetitions import Harmonic

    where = Path(dpselect.__file__).resolve()
    assert SOURCES not in where.parents, f"this is the source tree: {where}"
    assert dpselect.__version__ == metadata.version("dpselect")
    assert resources.files("dpselect").joinpath("py.typed").is_file()

    training = dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=100)
    assert training.epsilon(1e-5) < best_of(training, Harmonic(limit=30)).epsilon(1e-5) < 3 * training.epsilon(1e-5)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        price = command(
            "account",
            *("--base", "gaussian:noise_multiplier=4", "--repetitions", "harmonic:limit=30"),
            *("--delta", "1e-6", "--json"),
            folder=folder,
        )
        assert abs(json.loads(price)["epsilon"] - 1.49262) < 1e-4, price
        study = (SOURCES / "examples" / "breast_cancer.toml").read_text(encoding="utf-8")
        # the paths and the wheel are what is tested, so a short search is enough
        study = study.replace("mean = 8\nat_most = 50", "mean = 2\nat_most = 3")
        (folder / "study.toml").write_text(study, encoding="utf-8")
        command("tune", "study.toml", folder=folder)
        written = {path.name for path in (folder / "breast-cancer-search").iterdir()}
        assert {"release.json", "report.html", "model.npz"} <= written, written
        model = dpselect.load_model(folder / "breast-cancer-search" / "model.npz")
        assert set(model.predict([[15.0, 20.0, 100.0, 700.0, 0.1, 0.1, 0.1, 0.05, 17.0, 25.0, 110.0, 0.1]])) <= {0, 1}
    print(f"dpselect {dpselect.__version__} from {where.parent}: fine")


if __name__ == "__main__":
    main()
