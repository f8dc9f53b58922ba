from .durable import write_atomically as write_atomically
from .heads import HeadFile as HeadFile, KeptHead as KeptHead
from .keys import KeyPlace as KeyPlace, key_place as key_place, state_folder as state_folder
