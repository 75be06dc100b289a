package core

import (
	"bytes"
	"encoding/json"
)

// BareFilter shows the ids in the member "filter" of a JSON object bare (L1): bulk jobs write it into events and the audit log as
// it was given. Everything else stays as it is.
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
	text, _ := json.Marshal(value) // strings and what was JSON already always can
	return text
}
