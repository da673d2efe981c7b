//! The service as a model with a memory, for tests.
