package base

import (
	"bytes"
	"encoding/json"
)

// BareFilter replaces the ids in the member "filter" of a JSON object by bare ids (L1): bulk jobs write the filter to events and the audit log as
// it was given. Everything else is left unchanged.
func BareFilter(data json.RawMessage) json.RawMessage {
	if !bytes.Contains(data, []byte(`"{fp:`)) {
		return data
	}
	var whole, filter map[string]json.RawMessage
	if json.Unmarshal(data, &whole) != nil || json.Unmarshal(whole["filter"], &filter) != nil {
		return data
	}
	for _, name := range []string{"flow_id", "parent_id"} {
		var ids []string
		if json.Unmarshal(filter[name], &ids) != nil {
			continue
		}
		for i := range ids {
			ids[i] = BareID(ids[i])
		}
		filter[name] = encoded(ids)
	}
	var query string
	if json.Unmarshal(filter["q"], &query) == nil {
		filter["q"] = encoded(BareID(query))
	}
	whole["filter"] = encoded(filter)
	return encoded(whole)
}

func encoded(value any) json.RawMessage {
	text, _ := json.Marshal(value) // strings and valid JSON always marshal
	return text
}
