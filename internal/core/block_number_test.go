package core

import "testing"

func TestS46_the_number_of_an_admission_key_never_changes(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int32{
		"":            0,
		"slots:api":   836475388,
		"rate:api/eu": 812081044,
		"budget:018f2b5e-0000-7000-8000-000000000001": 516143637,
	} {
		if got := BlockNumber(key); got != want {
			t.Errorf("%q is filed under %d, and was under %d", key, got, want)
		}
	}
}
