"""The edge to the network: package index pages and metadata, release assets, the cache, the user's settings."""
