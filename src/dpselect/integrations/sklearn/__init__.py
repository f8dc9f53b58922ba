"""Private search over scikit-learn estimators: `PrivateSearchCV` and what its settings are made of."""

from dpselect.integrations.sklearn.diffprivlib_models import stated_epsilon
from dpselect.integrations.sklearn.plan import SearchPlan
from dpselect.integrations.sklearn.public import PublicTransformer
from dpselect.integrations.sklearn.scoring import RowScore
from dpselect.integrations.sklearn.search import PrivateSearchCV

__all__ = ["PrivateSearchCV", "PublicTransformer", "RowScore", "SearchPlan", "stated_epsilon"]
