package service

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core"
)

// millis rounds up, so that a short wait never becomes none.
func millis(d time.Duration) core.Millis {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

func duration(ms core.Millis) time.Duration { return time.Duration(ms) * time.Millisecond }

// idOf shows a stored id; "" when it is absent.
func idOf(id core.ID) api.ID {
	if id.IsZero() {
		return ""
	}
	return api.ID(id.String())
}

// givenID parses the id of an execution that may be left out; invalid_id.
func givenID(id api.ID) (*core.GivenID, error) {
	if id == "" {
		return nil, nil
	}
	given, err := core.ParseID(string(id))
	if err != nil {
		return nil, err
	}
	return &given, nil
}

// givenUUID parses another id that may be left out; invalid_id with the field.
func givenUUID(field, text string) (core.UUID, error) {
	if text == "" {
		return core.UUID{}, nil
	}
	return uuidOf(field, text)
}

// uuidOf parses another id; invalid_id with the field.
func uuidOf(field, text string) (core.UUID, error) {
	id, ok := core.ParseUUID(text)
	if !ok {
		return id, core.Errorf(core.CodeInvalidID, "%s is not a UUID", core.QuoteID(text)).WithField(field).WithHint("give it as it was shown")
	}
	return id, nil
}
