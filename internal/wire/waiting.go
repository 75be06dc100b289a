package wire

// NoSuspension is the answer about an execution that was never suspended in its present run.
type NoSuspension struct{}
