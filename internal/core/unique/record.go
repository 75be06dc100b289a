package unique

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric/internal/core/base"
)

// Record is who holds a key of a kind in a namespace (T50). It is judged by the record of the holder when it is next used, and removed with it.
type Record struct {
	Namespace string  `json:"namespace"`
	Kind      string  `json:"kind"`
	Key       string  `json:"key"`
	Holder    base.ID `json:"holder"`
}

type storedRecord struct {
	Version int `json:"v"`
	Record
}

// version is that of the stored form.
const version = 1

// Encode returns the stored form of the record.
func (r Record) Encode() []byte {
	text, _ := json.Marshal(storedRecord{version, r}) // cannot fail
	return text
}

// Decode reads what Encode wrote; anything else is corruption.
func Decode(data []byte) (Record, error) {
	var s storedRecord
	err := json.Unmarshal(data, &s)
	if err != nil || s.Version != version || base.CheckNamespace(s.Namespace) != nil || base.CheckKind(s.Kind) != nil || base.CheckKeyText(s.Key) != "" || s.Holder.IsZero() {
		return Record{}, base.Errorf(base.CodeCorruption, "the stored holder of a unique key cannot be read").With("record", "unique key")
	}
	return s.Record, nil
}

// HeldBy reports whether the record goes with an execution that is removed: a later submit may have taken the key.
func (r Record) HeldBy(id base.ID) bool { return r.Holder == id }
