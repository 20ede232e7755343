"""Real environments, made by uv from the package index: broken as people break them, judged, cured, judged again."""
