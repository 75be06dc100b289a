//go:build !race

package engine_test

const underRaceDetector = false
