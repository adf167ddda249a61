"""Join duplicate datasets, split them again, and fold datasets with dated names."""
