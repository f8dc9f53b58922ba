from .client import HoldoutClient as HoldoutClient
from .limits import ServerSettings as ServerSettings
from .running import serve as serve
