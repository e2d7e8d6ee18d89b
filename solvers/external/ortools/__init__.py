"""Integer programs and open shops by OR-tools' CP-SAT."""
