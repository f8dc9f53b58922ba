from .boards import open_boards as open_boards
from .client import HoldoutClient as HoldoutClient, ServerError as ServerError
from .limits import ServerSettings as ServerSettings
from .running import serve as serve
from .submitters import Submitters as Submitters
