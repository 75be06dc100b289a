package flowfabric_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/internal/wire"
)

func TestU2_every_operation_of_the_table_has_its_go_call(t *testing.T) {
	t.Parallel()
	for _, op := range wire.Operations() {
		switch {
		case op.Go == "" && op.NoGo == "":
			t.Errorf("%s has neither a Go call nor a reason for having none", op.ID)
		case op.Go != "" && !callable(op.Go):
			t.Errorf("%s: the Client has no %s", op.ID, op.Go)
		}
	}
	if callable("Admin.APIKeys.Forge") || callable("Magic.Do") {
		t.Error("what is not there is found")
	}
}

// callable walks a path such as Admin.APIKeys.List from the Client through its groups.
func callable(path string) bool {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "Client."), "(")
	at := reflect.TypeFor[*flowfabric.Client]()
	parts := strings.Split(path, ".")
	for i, name := range parts {
		method, found := at.MethodByName(name)
		if !found {
			return false
		}
		if i < len(parts)-1 {
			at = method.Type.Out(0)
		}
	}
	return true
}
