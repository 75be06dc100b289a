package base

import (
	"strings"
	"testing"
)

func TestU25_texts_are_those_of_codes_and_say_what_to_do(t *testing.T) {
	t.Parallel()
	for code, text := range codeTexts {
		if _, known := Codes()[code]; !known {
			t.Errorf("%s has a text and is no code", code)
		}
		for _, sentence := range []string{text.Meaning, text.Advice} {
			if !strings.HasSuffix(sentence, ".") || strings.Contains(sentence, "|") {
				t.Errorf("%s: %q is no sentence for a table", code, sentence)
			}
		}
	}
	if text := CodeStaleLease.Text(); text.Meaning == "" || text.Advice == "" {
		t.Errorf("%+v", text)
	}
}
