"""The window by enumeration, and relations between markets."""
