"""What survives a crash: durable writes, and the places of the keys that sealed records are under."""
