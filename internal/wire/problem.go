package wire

// Problem is every answer of 400 and above (U11, RFC 9457).
type Problem struct {
	Type         string         `json:"type" doc:"/problems/<code>, a page of this server."`
	Title        string         `json:"title" doc:"The code in words."`
	Status       int            `json:"status" doc:"The HTTP status."`
	Detail       string         `json:"detail" doc:"One sentence for people."`
	Code         string         `json:"code" doc:"Stable; match on it."`
	Class        string         `json:"class" doc:"Group of codes."`
	Field        string         `json:"field,omitempty" doc:"The field at fault: JSON pointer, query.name or header.Name."`
	Hint         string         `json:"hint,omitempty" doc:"What to do."`
	Retryable    bool           `json:"retryable" doc:"The same request, unchanged, may succeed later."`
	RetryAfterMS int64          `json:"retry_after_ms,omitempty" doc:"When to try again, in milliseconds."`
	RequestID    string         `json:"request_id,omitempty" doc:"Stands in logs and audit rows too."`
	Index        *int           `json:"index,omitempty" doc:"Of an atomic batch: the item that was refused."`
	Current      map[string]any `json:"current,omitempty" doc:"Facts that explain the refusal."`
	Errors       []FieldProblem `json:"errors,omitempty" doc:"All faulty fields."`
}

// FieldProblem is one faulty field of many.
type FieldProblem struct {
	Field  string `json:"field" doc:"JSON pointer, query.name or header.Name."`
	Code   string `json:"code" doc:"Stable; match on it."`
	Detail string `json:"detail" doc:"One sentence for people."`
	Hint   string `json:"hint,omitempty" doc:"What to do."`
}
