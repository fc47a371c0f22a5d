"""`schedlab tune`: searches values of keys for the best metric, and confirms the winner on fresh seeds."""
