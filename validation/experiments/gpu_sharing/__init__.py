"""The experiments of the SJF-BSBF paper (wise resource sharing), reproduced."""
