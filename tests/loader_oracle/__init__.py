"""Random graphs of libraries, loaded by the real ld.so and by the simulator, and compared."""
