"""Solves of one program through others: scaled objectives, outer approximation."""
