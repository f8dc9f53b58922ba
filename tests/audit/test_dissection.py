"""Audits of structured outputs: what is taken apart, what is found, what is never called violated, and the power."""

import math
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from dpselect.audit import Subject, audit, audit_outputs, command_subject, function_subject
from dpselect.audit.callables import collected
from dpselect.audit.dissection import dissect
from dpselect.audit.outputs import Exact, as_outputs, joined
from dpselect.audit.readings import dissected, fitted_reading
from dpselect.audit.result import Audit
from dpselect.cli.app import app
from dpselect.errors import ArgumentError
from dpselect.privacy import approximate_dp, laplace, pure_dp
from dpselect.randomness import keyed_source
from tests.audits import structured_sound, structured_zoo
from tests.audits.structured_parts import subject
from tests.audits.structured_sound import SOUND
from tests.audits.structured_zoo import LEAKING

CONFIDENCE = 1.0 - 1e-6


def of_tiers(mechanisms):
    """Every third of them in the full tier, all others in the slow one."""
    marks = (pytest.mark.full, pytest.mark.slow, pytest.mark.slow)
    return [pytest.param(one, marks=marks[place % 3]) for place, one in enumerate(mechanisms)]


class TestLeaks:
    @pytest.mark.parametrize(
        "mechanism",
        [
            structured_zoo.label_beside_the_count,
            structured_zoo.histogram_over_the_keys_that_occur,
            structured_zoo.int_or_float,
        ],
        ids=lambda one: one.__name__,
    )
    def test_gross_ones_show_in_few_draws(self, mechanism):
        assert audit(subject(mechanism), draws=300, random=keyed_source("few")).violated

    @pytest.mark.parametrize("mechanism", of_tiers(LEAKING), ids=lambda one: one.__name__)
    def test_every_one_is_found_at_20000_draws(self, mechanism):
        assert audit(subject(mechanism), draws=20_000, random=keyed_source("all")).violated

    def test_there_are_enough_of_them(self):
        names = [mechanism.__name__ for mechanism in (*LEAKING, *SOUND)]
        assert len(set(names)) == len(names)
        assert len(LEAKING) >= 30
        assert len(SOUND) >= 10


class TestSound:
    @pytest.mark.parametrize("mechanism", of_tiers(SOUND), ids=lambda one: one.__name__)
    def test_none_is_called_violated(self, mechanism):
        """Each has a false alarm with probability 1e-6 over keys."""
        found = audit(subject(mechanism), draws=20_000, confidence=CONFIDENCE, random=keyed_source("sound"))
        assert not found.violated, found.describe()

    @pytest.mark.parametrize("mechanism", [structured_sound.sound_order, structured_sound.sound_rounding])
    def test_few_draws(self, mechanism):
        found = audit(subject(mechanism), draws=400, confidence=CONFIDENCE, random=keyed_source("sound"))
        assert not found.violated
        assert found.verdict == "cannot tell"

    @pytest.mark.full
    @pytest.mark.statistical
    @pytest.mark.parametrize("mechanism", [structured_sound.sound_label, structured_sound.sound_rounding])
    def test_false_alarms_are_no_more_than_promised(self, mechanism):
        """Of one law on both sides, exactly at its claim of 0; at the promised rate this fails with chance 1e-6."""
        on_data = function_subject(
            lambda data, random: mechanism(data, random), data=("a",), neighbour=("a",), claim=pure_dp(epsilon=0.0)
        )
        alarms = sum(
            audit(on_data, draws=200, confidence=0.8, random=keyed_source(f"null {run}")).violated for run in range(40)
        )
        assert alarms <= stats.binom.isf(1e-6, 40, 0.2)


class TestPower:
    def test_not_violated_needs_power(self):
        """The same sound mechanism: many draws tell, few do not."""
        coin = Subject(
            name="coin",
            draw=lambda other, n, random: random.bernoulli(0.25 if other else 0.75, n),
            claim=pure_dp(epsilon=1.1),
        )
        few, many = (audit(coin, draws=draws, random=keyed_source("power")) for draws in (400, 20_000))
        assert (few.verdict, many.verdict) == ("cannot tell", "not violated")
        assert few.power < 0.95 <= many.power
        assert "what would do" in "\n".join(few.lines())
        assert few.shown["planted"]["enough"] > 400

    def test_a_large_claim_is_not_tested_by_few_draws(self):
        numbers = Subject(
            name="noise",
            draw=lambda other, n, random: np.round(random.laplace(n), 6) + other,
            claim=pure_dp(epsilon=8.0),
        )
        found = audit(numbers, draws=2000, random=keyed_source("large"))
        assert found.verdict == "cannot tell"
        assert found.power == 0.0
        assert found.epsilon_limit < 8.0

    @pytest.mark.full
    @pytest.mark.statistical
    @pytest.mark.parametrize(("draws", "runs"), [(1600, 12), pytest.param(6000, 24, marks=pytest.mark.slow)])
    def test_power_is_not_overstated(self, draws, runs):
        """Real leaks like the planted one, at sizes where the power is near to one half and near to one."""
        shown, powers = 0, []
        for run in range(runs):
            source = keyed_source(f"power {draws} {run}")
            honest, leak = (
                Subject(name="late", draw=_marked(share), claim=pure_dp(epsilon=1.0))
                for share in ((0.1, 0.1), (0.1, 0.1 * math.exp(-2.0)))
            )
            shown += audit(leak, draws=draws, random=source.spawn("leak")).violated
            powers.append(audit(honest, draws=draws, random=source.spawn("honest")).power or 0.0)
        # fewer would have probability 1e-4 if leaks were seen as often as is said
        assert shown >= stats.binom.ppf(1e-4, runs, float(np.mean(powers))) - 1

    def test_the_limit_is_of_this_form_of_output(self):
        """Text in which every draw is a new one, so that no label repeats."""

        def draw(other, n, random):
            return np.array([f"{number:.12f}" for number in random.laplace(n)])

        found = audit(Subject(name="text", draw=draw, claim=pure_dp(epsilon=1.0)), draws=2000, random=keyed_source(1))
        assert 0.0 < found.epsilon_limit <= 5.24
        assert "in this form of output" in "\n".join(found.lines())

    def test_a_claim_without_epsilon_is_not_tested(self):
        found = audit_outputs(
            np.zeros(100), np.zeros(100), laplace(scale=1.0), delta=0.0, random=keyed_source(1), confidence=0.9
        )
        assert found.power is not None
        nothing = Audit(
            name="x", violated=False, epsilon_lower=0.0, delta=0.0, claimed_epsilon=math.inf, confidence=0.99,
            direction="", event="", draws=10, method="black-box",
        )  # fmt: skip
        assert nothing.verdict == "cannot tell"
        assert nothing.describe()["verdict"] == "cannot tell"

    def test_delta_is_doubled_too(self):
        draw = lambda other, n, random: random.bernoulli(0.5, n)  # noqa: E731
        claim = approximate_dp(epsilon=0.5, delta=0.1)
        found = audit(Subject(name="coin", draw=draw, claim=claim), draws=20_000, random=keyed_source(1))
        assert found.shown["planted"]["delta"] == 0.2
        assert found.shown["planted"]["share"] == 0.2


def _marked(shares):
    def draw(other, n, random):
        rows = np.empty(n, dtype=object)
        marked = random.bernoulli(shares[int(other)], n)
        for place, (noise, mark) in enumerate(zip(random.laplace(n), marked, strict=True)):
            rows[place] = (round(float(noise), 4), "late" if mark else "on time")
        return rows

    return draw


@dataclass
class Box:
    content: object


ANYTHING = (
    *(0, 1, True, 2.0, 2**70, -0.0, math.nan, math.inf, None, "", "a 1.50 b", "-7"),
    *('{"a": [1, {"b": 2}]}', "[1", b"\x00a"),
    *([], [1, "a"], (1, "a"), {"a": 1, "b": [None]}, {1, 2}, frozenset({"x"}), Box([1]), datetime(2030, 1, 2, 3)),
    *(np.zeros((2, 3)), np.array([]), np.array(["a"]), np.array([None], dtype=object)),
    *(1 + 2j, ValueError("no"), range(3)),
    *(np.float32(0.1), np.int8(3), np.bool_(True), Counter("aab"), [[[[[[[[[1]]]]]]]]], {"a": math.nan}),
)


class TestDissection:
    def test_every_feature_is_a_number_or_a_text_of_the_one_output(self):
        for value in ANYTHING:
            features = dissect(Exact(value))
            assert features
            assert all(type(found) in (float, str) for _, found in features)
            assert str(features) == str(dissect(Exact(value)))
            names = Counter((name, type(found)) for name, found in features)
            assert names, value

    def test_a_reading_reads_each_output_by_itself(self):
        """No matter what stands beside it."""
        source = keyed_source("beside")
        rows = [ANYTHING[int(place)] for place in source.words(400) % len(ANYTHING)]
        sides = [dissected(as_outputs(collected(rows[start::2]))) for start in range(2)]
        reading = fitted_reading(*sides)
        assert reading.columns
        together = reading(joined([as_outputs(collected(rows[start : start + 40])) for start in range(0, 400, 40)]))
        for place in range(0, 400, 7):
            alone = reading(as_outputs(collected([rows[place]])))
            np.testing.assert_array_equal(together.columns[place], alone.columns[0])

    def test_numbers_that_numpy_made_alike_have_no_type(self):
        """An array of integers becomes one of floats where a draw has a fraction."""
        whole, mixture = np.array([1, 2]), np.array([1, 2.5])
        strange = np.array([1, None], dtype=object)
        features = [dissect(as_outputs(array).objects()[0]) for array in (whole, mixture, strange)]
        assert features[0] == features[1] == features[2]
        assert dissect(Exact(1)) != dissect(Exact(1.0))

    def test_an_output_that_cannot_be_looked_at_counts_by_its_type(self):
        class Shy:
            def __repr__(self):
                return "shy"

            @property
            def to_dict(self):
                raise RuntimeError("no")

        assert ("type of output", "Shy") in dissect(Exact(Shy()))

    def test_the_size_of_what_is_taken_apart_is_bounded(self):
        assert len(dissect({str(n): [n] * 50 for n in range(5000)})) <= 600


class TestCommands:
    SCRIPT = (
        "import sys; rows = open(sys.argv[1]).read().split(); print('ok'); "
        "open('out.txt', 'w').write('many' if len(rows) > 2 else 'few')"
    )

    @pytest.fixture
    def files(self, tmp_path):
        (tmp_path / "data.csv").write_text("1 2 3")
        (tmp_path / "other.csv").write_text("1 2")
        return {"data": tmp_path / "data.csv", "neighbour": tmp_path / "other.csv"}

    def test_files_that_it_writes_count(self, files):
        found = audit(
            command_subject("cp {data} here", claim=pure_dp(epsilon=0.1), **files), draws=60, random=keyed_source(1)
        )
        assert found.violated

    @pytest.mark.full
    @pytest.mark.parametrize(
        "command",
        [
            "test {data} -ef nothing",
            "cat {data}",
            "sh -c 'exit $(wc -w < {data})'",
            "sh -c 'cat {data} >&2'",
            "sh -c 'mkdir -p $(wc -w < {data})'",
        ],
    )
    def test_all_that_it_shows_counts(self, files, command):
        found = audit(command_subject(command, claim=pure_dp(epsilon=0.1), **files), draws=24, random=keyed_source(1))
        assert found.violated == ("nothing" not in command)

    def test_paths_are_no_part_of_it(self, files):
        drawn = command_subject("echo {data}", claim=pure_dp(epsilon=1.0), **files).draw(False, 2, keyed_source(1))
        assert drawn[0].value == drawn[1].value
        assert drawn[0].value.printed == "{folder}/data.csv\n"

    def test_refusals(self, files):
        claim = pure_dp(epsilon=1.0)
        with pytest.raises(ArgumentError, match="command must name"):
            command_subject("cat", claim=claim, **files)
        with pytest.raises(ArgumentError, match=r"data: .* cannot be read"):
            command_subject("cat {data}", claim=claim, data="none", neighbour="none")
        with pytest.raises(ArgumentError, match="does not start"):
            audit(command_subject("not-a-program {data}", claim=claim, **files), draws=8)

    def test_a_run_that_takes_too_long(self, files):
        late = command_subject(
            ["sh", "-c", "echo begun; sleep 5 # {data}"], claim=pure_dp(epsilon=1.0), timeout=0.2, **files
        )
        shown = late.draw(False, 1, keyed_source(1))[0].value
        assert (shown.status, shown.printed) == (None, "begun\n")

    def test_on_the_command_line(self, files):
        paths = ["--data", str(files["data"]), "--neighbour", str(files["neighbour"])]
        common = ["audit", "--command", "cat {data}", "--draws", "100"]
        found = CliRunner().invoke(app, [*common, *paths, "--claim-epsilon", "1"])
        assert found.exit_code == 1, found.output
        assert "VIOLATED" in found.stdout
        missing = CliRunner().invoke(app, [*common, *paths])
        assert missing.exit_code != 0

    @pytest.mark.full
    def test_python_programs(self, files):
        program = command_subject([sys.executable, "-c", self.SCRIPT, "{data}"], claim=pure_dp(epsilon=0.5), **files)
        assert audit(program, draws=40).violated
        assert subprocess.run([sys.executable, "-c", "pass"], check=True).returncode == 0


@pytest.mark.slow
def test_structured_outputs_are_analysed_in_seconds():
    import time

    began = time.process_time()
    audit(subject(structured_sound.sound_dataclass), draws=20_000, random=keyed_source("time"))
    assert time.process_time() - began < 20.0
