from .boards import open_boards as open_boards
from .client import HoldoutClient as HoldoutClient, ServerError as ServerError
from .running import ServerSettings as ServerSettings, serve as serve
from .submitters import Submitters as Submitters
