from .client import HoldoutClient as HoldoutClient
from .limits import ServerSettings as ServerSettings
from .runner import serve as serve
