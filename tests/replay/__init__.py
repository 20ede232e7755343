"""A package index on loopback: recorded from the live one on first demand, replayed from then on."""
