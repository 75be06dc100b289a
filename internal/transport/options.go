package transport

import (
	"fmt"

	"github.com/flowfabric/flowfabric/api"
)

// Single returns the single options struct of a call; more than one is refused with invalid_argument (U132).
func Single[T any](options []T) (one T, err error) {
	switch len(options) {
	case 0:
		return one, nil
	case 1:
		return options[0], nil
	default:
		return one, tooManyOptions(len(options), one)
	}
}

func tooManyOptions(given int, one any) error {
	return api.Errorf(codeInvalidArgument, "%d option structs given, at most one is taken", given).
		At("options", fmt.Sprintf("merge them into one %T", one))
}
