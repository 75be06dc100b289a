package runes_test

import (
	"testing"

	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/runes"
)

func TestU156_a_part_of_a_text_ends_between_characters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": 0, "a": 1, "aü": 3, "a\xc3": 1, "a漢": 4, "a\xe6\xbc": 1, "a\xe6": 1, "👩": 4, "a\xf0\x9f\x91": 1,
		"a\xff": 2, "\x80\x80": 2, "a\xbc\xbc\xbc\xbc": 5,
	} {
		if got := runes.Whole([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
