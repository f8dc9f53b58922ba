"""The parts of every durable record: a hash chain, a seal, its latest head kept elsewhere, a database engine."""
