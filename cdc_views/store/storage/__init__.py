"""The file system under the warehouse: durable writes, and the operating system's errors as errors of ours."""
