package wire

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric/api"
)

// Every argument of a bulk job belongs to one action: with any other it is refused and not ignored.
func TestU57_every_argument_of_a_bulk_job_is_foreign_to_all_actions_but_one(t *testing.T) {
	t.Parallel()
	field, _ := reflect.TypeFor[BulkRequest]().FieldByName("Action")
	actions := strings.Split(field.Tag.Get("enum"), ",")
	for _, field := range reflect.VisibleFields(reflect.TypeFor[BulkArgs]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" {
			continue // embedded
		}
		var args BulkArgs
		fill(t, reflect.ValueOf(&args).Elem().FieldByIndex(field.Index))
		var takers []string
		for _, action := range actions {
			switch foreign := args.Foreign(action); foreign {
			case "":
				takers = append(takers, action)
			case name:
			default:
				t.Errorf("%s of %s is refused as %s", name, action, foreign)
			}
		}
		if len(takers) != 1 {
			t.Errorf("%s is taken by %v", name, takers)
		}
	}
}

// fill sets a value to something else than its zero value.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Addr().Interface().(type) {
	case *Time:
		v.Set(reflect.ValueOf(Time{time.Unix(1, 0)}))
		return
	case *api.Payload:
		v.Set(reflect.ValueOf(api.Text("x")))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("a"), reflect.Zero(v.Type().Elem()))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(1)
	default:
		t.Fatalf("%s", v.Type())
	}
}
