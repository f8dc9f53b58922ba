"""What every durable record is made of: a hash chain, a seal, its latest head kept elsewhere, a database engine."""
