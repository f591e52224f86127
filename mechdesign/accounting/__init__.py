"""What was spent on whom: an exact, durable ledger of privacy budgets."""
