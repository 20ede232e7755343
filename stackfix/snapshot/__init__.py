"""Makes `matrices/conda`, the conda records that come with stackfix. Not needed at run time."""
