"""The experiments of the Dally paper: delay scheduling on racks of GPUs, beside Tiresias and Gandiva."""
