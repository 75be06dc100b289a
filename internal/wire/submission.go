package wire

import (
	"maps"
	"slices"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Submission returns the submission of the request: its JSON body, or its raw body as the input with the other fields from the
// query (U32).
//
// A raw body without query.kind is missing_field; query parameters with a JSON body are unknown_field; a tag without a value is
// invalid_argument.
func (r *SubmitRequest) Submission() (api.Submission, error) {
	if r.Raw.ContentType == "" {
		return r.Body, r.strayQuery().OrNil()
	}
	s := api.Submission{Kind: r.Kind, Input: api.Bytes(r.Raw.Data, r.Raw.ContentType)}
	s.Lane, s.IdempotencyKey = r.Lane, r.IdempotencyKey
	if r.Priority != nil {
		s.Priority = *r.Priority
	}
	var faults Errors
	if r.Kind == "" {
		faults = append(faults, &Error{
			Code: jsonx.CodeMissingField, Field: "query.kind", Detail: "required when the body is the input itself",
			Hint: "set `kind`, or send the submission as application/json",
		})
	}
	for _, key := range slices.Sorted(maps.Keys(r.Tags)) {
		value := r.Tags[key]
		if value == nil {
			faults = append(faults, &Error{Code: jsonx.CodeInvalidArgument, Field: "query.tag." + key, Detail: "the tag has no value", Hint: "write `tag." + key + "=VALUE`"})
			continue
		}
		if s.Tags == nil {
			s.Tags = map[string]string{}
		}
		s.Tags[key] = *value
	}
	return s, faults.OrNil()
}

// strayQuery finds query parameters that are only for raw bodies.
func (r *SubmitRequest) strayQuery() Errors {
	var faults Errors
	refuse := func(name string, given bool) {
		if given {
			faults = append(faults, &Error{
				Code: jsonx.CodeUnknownField, Field: "query." + name, Detail: "this query parameter is only for bodies that are not JSON", Hint: "put it into the body",
			})
		}
	}
	refuse("kind", r.Kind != "")
	refuse("lane", r.Lane != "")
	refuse("priority", r.Priority != nil)
	refuse("idempotency_key", r.IdempotencyKey != "")
	for key := range r.Tags {
		refuse("tag."+key, true)
	}
	return faults
}
