//go:build race

package main

// raceDetector is set in a program with the race detector, which takes several times the memory.
const raceDetector = true
