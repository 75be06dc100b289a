//go:build !linux && !darwin

package sqlite

import "math"

// syncDir does nothing: on these platforms the file system itself keeps names durable.
func syncDir(string) error { return nil }

// freeBytes cannot be determined here: no shortage is reported.
func freeBytes(string) (int64, error) { return math.MaxInt64, nil }
