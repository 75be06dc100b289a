package api

import "github.com/flowfabric/flowfabric/internal/core/base"

// ID names an execution or a flow: its UUID in lower case, which alone is unique in a store. Answers show that; calls also take the
// full form {fp:N}:<uuid>, whose N answers show as Partition.
type ID string

// ParseID checks the spelling of an id. Anything else is invalid_id.
func ParseID(text string) (ID, error) {
	if _, err := base.ParseID(text); err != nil {
		return "", AsError(err)
	}
	return ID(text), nil
}
