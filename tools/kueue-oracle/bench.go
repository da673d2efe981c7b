package main

import "io"

func bench([]string, io.Writer) error { return nil }
