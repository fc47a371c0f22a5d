"""`schedlab shrink`: the smallest scenario that still shows what a larger one shows."""
