//go:build race

package core

const underRaceDetector = true
