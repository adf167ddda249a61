"""Speed, measured: each module yields ratios against a peer or a limit taken in the same run."""
