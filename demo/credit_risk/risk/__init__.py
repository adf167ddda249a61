"""Python of the credit-risk project: what SQL says badly."""
