//go:build !linux && !darwin

package sqlite

import "math"

// freeBytes knows no way to look here: no shortage is told of.
func freeBytes(string) (int64, error) { return math.MaxInt64, nil }
