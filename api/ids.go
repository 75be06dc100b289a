package api

import "github.com/flowfabric/flowfabric/internal/core/base"

// ID identifies an execution or a flow: a UUID in lower case, unique in a store. Answers contain it; calls also accept the full
// form {fp:N}:<uuid>, whose N answers show as Partition.
type ID string

// ParseID checks the syntax of an id. Anything else is invalid_id.
func ParseID(text string) (ID, error) {
	if _, err := base.ParseID(text); err != nil {
		return "", AsError(err)
	}
	return ID(text), nil
}
