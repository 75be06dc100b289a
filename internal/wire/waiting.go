package wire

// NoSuspension is the empty answer for an execution without a suspension in its current run.
type NoSuspension struct{}
