"""Columns of free text: hashed terms, each row from its own text alone."""

import json
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError
from sklearn.feature_extraction.text import HashingVectorizer

from dpselect.randomness import keyed_source
from dpselect.study import load_model, load_study, parse_study, run_study
from dpselect.study.columns.column import Column

TEXTS = ["The flight was late, again.", "Great crew!", "", None, float("nan"), "straße", 12, b"bytes here"]


def test_the_features_are_those_of_scikit_learn():
    column = Column(kind="text", n_features=64, analyzer="char_wb", ngram_range=(2, 4))
    vectorizer = HashingVectorizer(n_features=64, analyzer="char_wb", ngram_range=(2, 4), alternate_sign=False)
    plain = ["The flight was late, again.", "Great crew!", "", "", "", "straße", "12", "bytes here"]
    features = column.encode("note", TEXTS)
    assert np.array_equal(features, vectorizer.transform(plain).toarray())
    assert np.allclose(np.linalg.norm(features, axis=1), [1, 1, 0, 0, 0, 1, 1, 1])


def test_a_missing_text_has_an_indicator_of_its_own():
    column = Column(kind="text", n_features=8, missing="indicator")
    features = column.encode("note", TEXTS)
    assert features.shape == (len(TEXTS), column.width) == (8, 9)
    assert features[:, -1].tolist() == [0, 0, 1, 1, 1, 0, 0, 0]


def test_accents_are_one_letter_however_they_were_typed():
    column = Column(kind="text")
    typed = ["caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")]
    first, second = column.encode("note", typed)
    assert np.array_equal(first, second)


cells = st.one_of(
    st.text(max_size=20), st.none(), st.floats(), st.integers(), st.binary(max_size=9), st.just("\ud800"), st.booleans()
)


@settings(max_examples=40, deadline=None)
@given(st.lists(cells, min_size=2, max_size=6), cells)
def test_no_cell_raises_and_no_row_sees_another(texts, other):
    column = Column(kind="text", n_features=16, ngram_range=(1, 2), missing="indicator")
    features = column.encode("note", texts)
    changed = column.encode("note", [other, *texts[1:]])
    assert np.array_equal(features[1:], changed[1:])
    assert np.all((features >= 0) & (features <= 1))
    assert np.all(np.linalg.norm(features[:, :-1], axis=1) <= 1 + 1e-12)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"bounds": (0, 1)}, "no bounds"),
        ({"categories": ("a", "b")}, "no bounds"),
        ({"scale": "log"}, "scale"),
        ({"format": "%d"}, "format"),
        ({"other": True}, "other goes with categories"),
        ({"missing": "none"}, "indicator"),
        ({"n_features": 1}, "greater than or equal to 2"),
        ({"n_features": 1 << 20}, "less than or equal"),
        ({"analyzer": "words"}, "'word', 'char' or 'char_wb'"),
        ({"ngram_range": (3, 2)}, "smaller number first"),
        ({"ngram_range": (0, 2)}, "greater than or equal to 1"),
    ],
)
def test_what_does_not_go_with_text_is_refused(facts, said):
    with pytest.raises(ValidationError, match=said):
        Column(kind="text", **facts)


@pytest.mark.parametrize("key", [{"n_features": 9}, {"analyzer": "word"}, {"ngram_range": (1, 1)}])
def test_its_keys_go_with_no_other_kind(key):
    with pytest.raises(ValidationError, match='go with kind = "text"'):
        Column(bounds=(0, 1), **key)


@pytest.mark.full
def test_a_study_learns_from_text(tmp_path):
    """Two kinds of notes and nothing else; the model, loaded, answers for texts it has not seen."""
    rng = np.random.default_rng(3)
    words = {"bad": ["late", "lost", "rude", "dirty"], "good": ["kind", "quick", "clean", "calm"]}
    lines = ["note,mood"]
    for _ in range(600):
        mood = "good" if rng.random() < 0.5 else "bad"
        lines.append(f'"the crew, it was {" ".join(rng.choice(words[mood], 2))}",{mood}')
    (tmp_path / "notes.csv").write_text("\n".join(lines))
    study = parse_study(
        {
            "name": "notes",
            "data": {
                "source": "notes.csv",
                "label": "mood",
                "classes": ["good", "bad"],
                "columns": {"note": {"kind": "text", "n_features": 256}},
            },
            "privacy": {"epsilon": 3, "delta": 1e-5, "adjacency": "add_or_remove_one", "nominal_rows": 600},
            "learner": {"name": "dp-sgd", "steps": 40},
            "output": {"folder": "out"},
        }
    )
    run_study(study, base_folder=tmp_path, folder=tmp_path / "out", random=keyed_source("text"))
    model = load_model(tmp_path / "out" / "model.npz")
    assert model.predict({"note": ["a kind and clean crew", "rude, and the bag was lost"]}).tolist() == ["good", "bad"]
    stored = json.loads((tmp_path / "out" / "release.json").read_text())["data"]["columns"]["note"]
    assert stored == {"kind": "text", "n_features": 256, "analyzer": "word", "ngram_range": [1, 1]}
    assert "terms of 1 word, hashed to 256 features" in (tmp_path / "out" / "model-card.md").read_text()


def test_a_study_file_names_a_wrong_key_of_text(tmp_path):
    from dpselect.errors import StudyError

    (tmp_path / "s.toml").write_text(
        '[data]\nsource = "x.csv"\nlabel = "y"\nclasses = [0, 1]\n'
        '[data.columns]\nnote = { kind = "text", n_feature = 9 }\n'
    )
    with pytest.raises(StudyError, match="n_feature"):
        load_study(tmp_path / "s.toml")
