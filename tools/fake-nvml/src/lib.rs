//! An NVIDIA driver's library without the driver: what it answers stands in a file.
