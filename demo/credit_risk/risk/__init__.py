"""Python functions of the credit-risk project, for what is hard to write in SQL."""
