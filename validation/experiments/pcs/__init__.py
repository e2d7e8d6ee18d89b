"""The experiments of the PCS paper (predictability-centric scheduling by weighted fair queues), reproduced."""
