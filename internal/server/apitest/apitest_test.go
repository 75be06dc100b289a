package apitest

import (
	"strings"
	"testing"
)

const small = `{"paths":{"/v1/things/{id}":{"get":{"responses":{"200":{"content":{"application/json":{"schema":
	{"type":"object","properties":{"at":{"type":"string","format":"date-time"},"by":{"type":"object","properties":{"name":{"type":"string"}}}}}}}}}}}},
	"components":{"responses":{"Problem":{"content":{"application/problem+json":{"schema":{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}}}}}}}`

func TestU116_an_answer_that_the_document_does_not_describe_is_found(t *testing.T) {
	t.Parallel()
	d, err := Read([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	const path = "/v1/things/{id}"
	for body, want := range map[string]string{
		`{"at":"2026-01-02T03:04:05Z","by":{"name":"ana"}}`: "",
		`{"at":"yesterday"}`:  "not as the document says",
		`{"on":1}`:            "not as the document says", // clients would let it pass
		`{"by":{"title":""}}`: "not as the document says",
		`{"at":`:              "not as the document says",
	} {
		says(t, body, d.CheckAnswer("GET", path, 200, []byte(body)), want)
	}
	says(t, "another status", d.CheckAnswer("GET", path, 201, []byte(`{}`)), "does not have")
	says(t, "a problem", d.CheckProblem([]byte(`{"code":"internal"}`)), "")
	says(t, "half a problem", d.CheckProblem([]byte(`{}`)), "not as the document says")
	if _, err := Read([]byte("{")); err == nil {
		t.Error("what is no document is read")
	}
}

// says checks what is reported of something; "": nothing.
func says(t *testing.T, what string, got error, want string) {
	t.Helper()
	if (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) {
		t.Errorf("%s: %v, want %q", what, got, want)
	}
}
