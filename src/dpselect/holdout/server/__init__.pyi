from .client import HoldoutClient as HoldoutClient, ServerError as ServerError
from .limits import ServerSettings as ServerSettings
from .running import serve as serve
