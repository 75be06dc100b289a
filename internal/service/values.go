package service

import (
	"time"

	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/internal/core/base"
)

// millis rounds up, so that a short wait never becomes zero.
func millis(d time.Duration) base.Millis {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

func duration(ms base.Millis) time.Duration { return time.Duration(ms) * time.Millisecond }

// idOf converts a stored id; "" if it is absent.
func idOf(id base.ID) api.ID {
	if id.IsZero() {
		return ""
	}
	return api.ID(id.String())
}

// givenID parses the optional id of an execution; invalid_id.
func givenID(id api.ID) (*base.GivenID, error) {
	if id == "" {
		return nil, nil
	}
	given, err := base.ParseID(string(id))
	if err != nil {
		return nil, err
	}
	return &given, nil
}

// givenUUID parses another optional id; invalid_id with the field.
func givenUUID(field, text string) (base.UUID, error) {
	if text == "" {
		return base.UUID{}, nil
	}
	return uuidOf(field, text)
}

// uuidOf parses another id; invalid_id with the field.
func uuidOf(field, text string) (base.UUID, error) {
	id, ok := base.ParseUUID(text)
	if !ok {
		return id, base.Errorf(base.CodeInvalidID, "%s is not a UUID", base.QuoteID(text)).WithField(field).WithHint("give it as it was shown")
	}
	return id, nil
}
