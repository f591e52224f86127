"""Pictures and the report: what a person looks at."""
