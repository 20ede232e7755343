"""The compatibility matrix: facts from `matrices/*.toml`, each with its source and confidence."""
