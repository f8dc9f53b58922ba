"""Mistakes whose message says what is wrong, but holds no line that works when it is pasted."""

# ruff: noqa: E501 - lines as they were typed

from typing import Final

WITHOUT_LINE: Final = frozenset(
    {
        # what was asked for is secret
        "SEARCH.best_score_",
        "SEARCH.cv_results_",
        # only the user knows the right data: labels, rows, columns or ids that fit
        "DPSGDClassifier(classes=2, nominal_rows=200).fit(X, Y)",
        "DPSGDClassifier(noise_multiplier=1.0).fit(X, Y).predict(X[:, :1])",
        "Gate.create('new.gate', {'a': 80, 'b': 95})",
        "SEARCH.fit(X * 1000, Y)",
        "SEARCH.fit(X, Y[:5])",
        "SEARCH.fit(X, np.arange(200) % 7)",
        "SEARCH.fit(X[:, 0], Y)",
        "SEARCH.fit(np.full((200, 2), 'a'), Y)",
        "SEARCH.fit(np.where(X > 0.4, np.nan, X), Y)",
        "exponential_mechanism([], sensitivity=1, epsilon=1)",
        "gate.ask(0.9)",
        "gate.ask([1] * 60)",
        "gate.ask({'z1': 1})",
        "learner.fit(X.tolist(), Y[:3])",
        "load_model('model.npz').predict(X)",
        "load_model('model.npz').predict({'mango': ['a'], 'apple': [0]})",
        "noisy_count(10.5, epsilon=1)",
        # only the user knows the name of a file, a column or a budget
        "Holdout.open('absent.holdout')",
        "account --optuna absent.db --base zcdp:rho=0.1 --delta 1e-6",
        "audit absent:run --data 6 --neighbour 5 --claim pure:epsilon=0.5",
        "audit sqrt --data 6 --neighbour 5 --claim pure:epsilon=0.5",
        "gate ask absent.csv --gate my.gate",
        "holdout score guesses.csv",
        "holdout score guesses.csv --holdout absent.holdout",
        "init absent.csv --label job --to draft.toml",
        "init people.csv --label income --to draft.toml",
        "init people.csv --to draft.toml",
        "ledger create other.db b --epsilon 1",
        "predict model.npz",
        "predict model.npz people.csv --to out.csv",
        "predict people.csv",
        "predict people.csv model.npz --to out.csv",
        "quantile people.csv --column income --q 0.5 --epsilon 1 --lower 0 --upper 120",
        "quantile people.csv --column job --q 0.5 --epsilon 1 --lower 0 --upper 120",
        "quantile people.csv age --q 0.5 --epsilon 1 --lower 0 --upper 120",
        "report absent",
        "ledger create budget.db --budget team --epsilon 1",
        # two mistakes in one line, or the cure takes more than one line
        "Holdout.create('h', Y, metric='accuracy', questions=10)",
        "median(AGES, epsilon=1, bounds=(0, 120), random_state=0)",
        "nominal_rows = 200\nnoise_multiplier = 4.0",
        "DPSGDClassifier(steps=2, sampling_rate=0.5, nominal_rows=200).score(X, Y)",
        "PrivateSearchCV(LISTS, learner, epsilon=3, delta=1e-5, nominal_rows=200).plan()",
        "PrivateSearchCV(LogisticRegression(), {'C': [1.0]}, epsilon=3, delta=1e-5, nominal_rows=200).plan()",
        "SparseVector(1.0, threshold=10)",
        "SparseVector(epsilon=1.0, threshold=10, c=3)",
        '[output]\nfolder = "out"\n[search]\ndesign = "grid"',
        "[repetitions]\nn = 10",
        "audit math:sqrt --data 6 --neighbor 5 --claim pure:epsilon=0.5",
        "dp_sgd(noise_multiplier=1.1, sampling_rate=0.01, steps=1000).compose(BASE)",
        "epsilon = 1e-5\ndelta = 3.0",
        "median people.csv --column age --epsilon 1 --lower 0 --upper 120",
        "median(AGES, epsilon=1, lower='0', upper='120')",
        "quantile people.csv --column age --q 0.5 --epsilon 1 --lower 0 --upper 120 --ledger budget.db --budget team --epsilon 50",
        "steps = 20\nlr = 0.1",
        'without [output]\nfolder = "out"',
    }
)
