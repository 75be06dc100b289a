package base

import "testing"

func TestU17_another_revision_is_refused_with_the_present_one(t *testing.T) {
	t.Parallel()
	three := int64(3)
	expect(t, CheckRevision(nil, 7), "", "")
	expect(t, CheckRevision(&three, 3), "", "")
	err := asError(t, CheckRevision(&three, 7))
	if err.Code != CodePreconditionFailed || err.Details["revision"] != int64(7) {
		t.Errorf("%v %v", err, err.Details)
	}
}
