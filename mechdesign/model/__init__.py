"""The values that a question is made of: secrets, priors, requirements, problems, channels."""
