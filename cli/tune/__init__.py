"""`equipoise tune`: search for configurations of policies."""
