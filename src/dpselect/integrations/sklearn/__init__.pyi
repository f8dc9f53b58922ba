from .diffprivlib_models import stated_epsilon as stated_epsilon
from .public import PublicTransformer as PublicTransformer
from .scoring import RowScore as RowScore
from .search import PrivateSearchCV as PrivateSearchCV
