"""Studies whose rows stay in a database: it adds up what a learner needs of the rows that train."""
