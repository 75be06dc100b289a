//go:build race

package txn_test

const underRaceDetector = true
