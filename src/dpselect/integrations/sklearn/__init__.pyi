from .public import PublicTransformer as PublicTransformer
from .scoring import RowScore as RowScore
from .search import PrivateSearchCV as PrivateSearchCV
