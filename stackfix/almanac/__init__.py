"""Makes the almanac (`matrices/abi`) from published wheels: an edge, for maintainers; no command needs it."""
