"""The Spark session of the engine: the driver JVM, its settings, and what its jobs cost."""
