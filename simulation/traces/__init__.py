"""Traces of jobs: tables, readers, writers and generators."""
