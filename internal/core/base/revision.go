package base

// CheckRevision compares the revision that a caller expects with the present one: precondition_failed (U17). A nil expectation always passes.
func CheckRevision(expected *int64, present int64) error {
	if expected == nil || *expected == present {
		return nil
	}
	return Errorf(CodePreconditionFailed, "the revision is %d, not %d", present, *expected).
		WithField("revision").With("revision", present).WithHint("read it again and decide anew")
}
