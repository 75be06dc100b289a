package api

import (
	"errors"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// readAnswer reads the JSON of an answer; fields that are not known are ignored (U4).
func readAnswer(text []byte, into any) error {
	if err := jsonx.DecodeLenient(text, into); err != nil {
		return Errorf(string(base.CodeInvalidJSON), "this is not the JSON of the API: %w", err)
	}
	return nil
}

// readRequest reads JSON as strictly as the HTTP API does: its errors have codes and the path of the field at fault (U5).
func readRequest(text []byte, into any) error { return FaultsError(jsonx.Decode(text, into)) }

// FaultsError turns the faults of a request that cannot be read or written into an Error, with all of them in Errors where there are
// several. Other errors stay what they are.
func FaultsError(err error) error {
	var all jsonx.Errors
	var one *jsonx.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &all):
		one = all[0]
	case !errors.As(err, &one):
		return err
	}
	refusal := Errorf(one.Code, "%s", one.Detail).At(one.Field, one.Hint)
	if len(all) > 1 {
		for _, fault := range all {
			refusal.Errors = append(refusal.Errors, FieldError{Field: fault.Field, Code: fault.Code, Message: fault.Detail, Hint: fault.Hint})
		}
	}
	return refusal
}
